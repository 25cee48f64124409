"""A client of the server's extended query protocol, as libpq speaks it: every
statement is prepared once and then bound, described and executed."""
import os
import socket
import struct
import time

from .server import BenchError


class Connection:
    """One backend, over the socket that PGHOST and PGPORT name; no password."""

    def __init__(self, options, database=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect("%s/.s.PGSQL.%s" % (os.environ["PGHOST"], os.environ["PGPORT"]))
        self.buffer = self.socket.makefile("rb")
        self.backend = None
        words = ("user", os.environ["PGUSER"], "database", database or os.environ["PGDATABASE"],
                 "options", options)
        body = struct.pack("!i", 3 << 16) + b"".join(text(word) for word in words) + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self.finish()

    def prepare(self, name, sql):
        self.socket.sendall(message(b"P", text(name) + text(sql) + b"\0\0") + message(b"S"))
        self.finish()

    def execute(self, name, values=()):
        bound = b"".join(struct.pack("!i", len(v.encode())) + v.encode() for v in values)
        self.socket.sendall(
            message(b"B", b"\0" + text(name) + struct.pack("!hh", 0, len(values)) + bound + b"\0\0") +
            message(b"D", b"P\0") + message(b"E", b"\0" + struct.pack("!i", 0)) + message(b"S"))
        return self.finish()

    def wait(self):
        """Until the backend waits for us: what it finds sent already takes it
        fewer instructions."""
        while True:
            with open("/proc/%d/stat" % self.backend) as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "S":
                    return
            time.sleep(0.0002)

    def query(self, sql):
        self.socket.sendall(message(b"Q", text(sql)))
        self.finish()

    def close(self):
        """Returns when the backend has gone."""
        self.socket.sendall(message(b"X"))
        while self.buffer.read(4096):
            pass
        self.socket.close()

    def finish(self):
        """Reads up to the end of the answer; returns its number of rows."""
        rows, error = 0, None
        while True:
            head = self.buffer.read(5)
            if len(head) < 5:
                raise BenchError("the server closed the connection")
            kind, length = head[:1], struct.unpack("!i", head[1:])[0]
            body = self.buffer.read(length - 4)
            if kind == b"Z":
                break
            if kind == b"D":
                rows += 1
            elif kind == b"K":
                self.backend = struct.unpack("!i", body[:4])[0]
            elif kind == b"R" and body != b"\0\0\0\0":
                raise BenchError("the server asks for a password")
            elif kind == b"E":
                error = b" ".join(field[1:] for field in body.split(b"\0") if field[:1] in (b"C", b"M"))
        if error:
            raise BenchError(error.decode(errors="replace"))
        return rows


def text(string):
    return string.encode() + b"\0"


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body
