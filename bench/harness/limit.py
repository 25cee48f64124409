"""A memory-limited control group around a server of our own, where we may, and
files that the operating system is to forget."""
import os
import sys
import time
from pathlib import Path

V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")


class MemoryLimit:
    """Processes that are added share `megabytes`, page cache included."""

    def __init__(self, megabytes):
        v1 = (V1 / "memory.limit_in_bytes").exists() or (V1 / "cgroup.procs").exists()
        self.parent = V1 if v1 else V2
        self.group = self.parent / ("hybridindex-bench-%d" % os.getpid())
        self.group.mkdir()
        try:
            (self.group / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text(str(megabytes << 20))
        except OSError:
            self.group.rmdir()
            raise

    def add(self, pids, group=None):
        for pid in pids:
            try:
                ((group or self.group) / "cgroup.procs").write_text(str(pid))
            except ProcessLookupError:
                pass

    def remove(self):
        for last in [False] * 50 + [True]:
            self.add((self.group / "cgroup.procs").read_text().split(), self.parent)
            try:
                self.group.rmdir()
                return
            except OSError:         # a process that is on its way out, or new
                if last:
                    raise
                time.sleep(0.1)


def try_limit(megabytes):
    """A limit, or None where the machine does not allow it."""
    try:
        return MemoryLimit(megabytes)
    except OSError:
        return None


def forget(paths):
    """Has the operating system drop what it keeps of files that can be read."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def forget_cluster(directory):
    """The same of all relations of a data directory."""
    forget(path for path in Path(directory, "base").rglob("*") if path.is_file())


def begin_limit(server, megabytes, **settings):
    """Restarts a server with settings in a control group, after the one that it is
    in, if any; the operating system has forgotten its files.  Exits where that
    cannot be done."""
    end_limit(server)
    server.psql("CHECKPOINT")
    directory = server.value("SHOW data_directory")
    server.limit = try_limit(megabytes)
    if server.limit is None:
        sys.exit("no control group can be made here")
    server.restart(**settings)
    forget_cluster(directory)


def end_limit(server, *settings):
    """Lets it out, if it is in one; and restarts it without these settings."""
    if server.limit is None:
        return
    server.limit.remove()
    server.limit = None
    if settings:
        server.restart(**dict.fromkeys(settings))
