"""A client of the server's simple query protocol that keeps all it is told."""
import socket
import struct


class Lost(Exception):
    """The server has closed the connection."""


class Answer:
    """What came back for one query string."""

    def __init__(self):
        self.rows = []          # of all its statements
        self.tags = []
        self.notices = []       # dictionaries of fields, by their protocol letters
        self.error = None

    def failed(self):
        return self.error is not None


class Connection:
    """One session, over a socket in a directory; no password."""

    def __init__(self, directory, port, user, database, options=""):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(150)
        self.socket.connect("%s/.s.PGSQL.%d" % (directory, port))
        self.buffer = self.socket.makefile("rb")
        self.status = "I"       # of the transaction: I, T or E
        words = ("user", user, "database", database, "options", options)
        body = struct.pack("!i", 3 << 16) + b"".join(w.encode() + b"\0" for w in words) + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        answer = self.finish(None)
        if answer.failed():
            raise Lost(answer.error["M"])

    def query(self, sql, copied=None):
        """Execute a query string; `copied` is what COPY FROM STDIN reads."""
        self.send(b"Q", sql.encode() + b"\0")
        return self.finish(copied)

    def close(self):
        try:
            self.send(b"X", b"")
            while self.buffer.read(4096):
                pass
        except (OSError, Lost):
            pass
        self.socket.close()

    def send(self, kind, body):
        try:
            self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)
        except OSError as error:
            raise Lost(str(error))

    def finish(self, copied):
        answer = Answer()
        while True:
            try:
                head = self.buffer.read(5)
                if len(head) < 5:
                    raise Lost("the server closed the connection")
                kind, length = head[:1], struct.unpack("!i", head[1:])[0]
                body = self.buffer.read(length - 4)
            except OSError as error:
                raise Lost(str(error))
            if kind == b"Z":
                self.status = body.decode()
                return answer
            if kind == b"D":
                answer.rows.append(fields_of(body))
            elif kind == b"C":
                answer.tags.append(body[:-1].decode())
            elif kind in (b"N", b"E"):
                told = {field[:1].decode(): field[1:].decode(errors="replace")
                        for field in body.split(b"\0") if field}
                if kind == b"E":
                    answer.error = told
                else:
                    answer.notices.append(told)
            elif kind == b"G":
                self.send(b"d", (copied or "").encode())
                self.send(b"c", b"")


def fields_of(body):
    count, at, row = struct.unpack("!h", body[:2])[0], 2, []
    for _ in range(count):
        length = struct.unpack("!i", body[at:at + 4])[0]
        at += 4
        row.append(None if length < 0 else body[at:at + length].decode(errors="replace"))
        at += max(length, 0)
    return row
