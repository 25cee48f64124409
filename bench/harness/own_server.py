"""A server of our own: initdb in a directory, settings for the machine, and its removal.

It flushes, as a server in use does.  Memory is a quarter of the machine's, and what
depends on it follows.  Nothing listens but a socket in a directory that only we enter.
"""
import glob
import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from .machine import free_bytes, memory_bytes, processors
from .server import BenchError

MB, GB = 1 << 20, 1 << 30
PORT = "65432"
PROGRAMS = ("initdb", "pg_ctl", "postgres", "psql", "pgbench")


def find_programs():
    """The directory of a server's programs: of PG_CONFIG, in PATH, or the newest one."""
    asked = os.environ.get("PG_CONFIG")
    if asked:
        found = [subprocess.run([asked, "--bindir"], capture_output=True, text=True, check=True).stdout.strip()]
    else:
        there = glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/usr/pgsql-*/bin")
        found = [str(Path(path).resolve().parent) for path in [shutil.which("initdb")] if path]
        found += sorted(there, key=lambda path: int("".join(filter(str.isdigit, path))), reverse=True)
    for directory in found:
        if all(Path(directory, program).exists() for program in PROGRAMS):
            return directory
    raise BenchError("there is no server with %s; PG_CONFIG may name its pg_config" % ", ".join(PROGRAMS))


def bounded(least, size, most):
    return max(least, min(size, most))


def settings(directory):
    """For this machine.  hybridindex.dynamic_memory follows docs/guide/sizing.md for
    the tables that an hour fills."""
    memory, cores = memory_bytes(), processors()
    shm = os.statvfs("/dev/shm")
    shm = shm.f_blocks * shm.f_frsize
    return {
        "shared_buffers": "%dMB" % (bounded(128 * MB, memory // 4, 32 * GB) // MB),
        "maintenance_work_mem": "%dMB" % (bounded(64 * MB, memory // 32, 2 * GB) // MB),
        "max_wal_size": "%dMB" % (bounded(1 * GB, min(memory // 4, free_bytes(directory) // 8), 64 * GB) // MB),
        "checkpoint_timeout": "15min",
        "max_connections": "600",
        "max_worker_processes": str(8 + cores),
        "hybridindex.max_merge_workers": str(max(2, cores // 8)),
        "hybridindex.dynamic_memory": "%dMB" % (bounded(16 * MB, min(memory // 64, shm // 4), 2 * GB) // MB),
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
    }


class OwnServer:
    """Within `with`, it runs, and libpq's variables name it."""

    def __init__(self, directory):
        self.programs, self.data = find_programs(), Path(directory) / "data"
        self.log = Path(directory) / "server.log"
        self.socket = None
        # postgres does not run as root
        self.owner = "postgres" if os.geteuid() == 0 else None

    def command(self, program, *arguments):
        prefix = ["runuser", "-u", self.owner, "--"] if self.owner else []
        return [*prefix, "%s/%s" % (self.programs, program), *arguments]

    def run(self, program, *arguments):
        # a server that we start is not to have our pipes
        with tempfile.TemporaryFile("w+") as out:
            run = subprocess.run(self.command(program, *arguments), cwd="/", stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT)
            out.seek(0)
            if run.returncode != 0:
                raise BenchError("%s: %s" % (program, out.read().strip()))

    def give(self, path):
        if self.owner:
            shutil.chown(path, self.owner)

    def restart_command(self):
        return shlex.join(self.command("pg_ctl", "-D", str(self.data), "-l", str(self.log), "-w", "-t", "300",
                                       "-m", "fast", "restart"))

    def create(self):
        if self.owner:
            try:
                pwd.getpwnam(self.owner)
            except KeyError:
                raise BenchError("the server refuses to run as root, and there is no user postgres")
            if subprocess.run(["runuser", "-u", self.owner, "--", "test", "-x", str(self.data.parent)], cwd="/").returncode:
                raise BenchError("user postgres cannot enter %s" % self.data.parent)
        self.data.mkdir(mode=0o700)
        self.log.touch()
        self.socket = Path(tempfile.mkdtemp(prefix="hybridindex"))
        for path in (self.data, self.log, self.socket):
            self.give(path)
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.write("listen_addresses = ''\nunix_socket_directories = '%s'\nport = %s\n" % (self.socket, PORT))
            for name, value in settings(self.data).items():
                conf.write("%s = '%s'\n" % (name, value))

    def start(self, *arguments):
        """Says what the server's log says, if it does not start."""
        try:
            self.run("pg_ctl", "-D", str(self.data), "-l", str(self.log), "-w", "-t", "300", *arguments)
        except BenchError as error:
            raise BenchError("%s\n%s" % (error, "".join(self.log.read_text().splitlines(True)[-5:])))

    def restart(self, settings):
        """With these beside the ones that it has always; whatever state it is in."""
        with open(self.data / "postgresql.auto.conf", "w") as conf:
            for name, value in settings.items():
                conf.write("%s = '%s'\n" % (name, value))
        self.start("-m", "fast", "restart")

    def __enter__(self):
        for name in [name for name in os.environ if name.startswith("PG") and name != "PG_CONFIG"]:
            del os.environ[name]
        os.environ.update(PATH="%s:%s" % (self.programs, os.environ["PATH"]), PGPORT=PORT, PGUSER="postgres",
                          PGDATABASE="postgres")
        try:
            self.create()
            os.environ["PGHOST"] = str(self.socket)
            self.start("start")
        except BaseException:
            self.__exit__()
            self.log.unlink(missing_ok=True)
            raise
        return self

    def __exit__(self, *error):
        if (self.data / "postmaster.pid").exists():
            try:
                self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")
            except BenchError:
                pass                # it has ended
        for path in (self.data, self.socket):
            if path:
                shutil.rmtree(path, ignore_errors=True)
