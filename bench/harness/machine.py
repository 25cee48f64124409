"""What a report says of the machine: nothing that names it, its users or its network."""
import os
import platform
import re
import subprocess
import time
from pathlib import Path

from .report import processor

# A mount's options that change figures.  The rest may name hosts and users.
OPTIONS = re.compile(r"(ro|rw|noatime|relatime|lazytime|sync|dax|discard|nobarrier|nodatacow|data=\w+|commit=\d+|"
                     r"barrier=\w+|compress(-force)?=[\w:]+|logbufs=\d+)$")
SYNCS = 200             # flushes that are timed, or those of a second


def read(path, default=""):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def processors():
    """Those that we may run on."""
    return len(os.sched_getaffinity(0))


def gigabytes(size):
    return "%.3g GB" % (size / 1e9) if size < 1e12 else "%.3g TB" % (size / 1e12)


def processor_facts():
    model = processor() or re.sub(r".*?Model name:\s*(.*?)\n.*", r"\1", output("lscpu"), flags=re.DOTALL)
    cpuinfo = read("/proc/cpuinfo")
    sockets = len(set(re.findall(r"^physical id\s*: (\d+)", cpuinfo, re.M)))
    cores = re.search(r"^cpu cores\s*: (\d+)", cpuinfo, re.M)
    text = "%s, %d logical processors" % (model or platform.machine(), os.cpu_count())
    if sockets and cores:
        text += ", %d sockets of %s cores" % (sockets, cores[1])
    if processors() < os.cpu_count():
        text += ", %d for us" % processors()
    governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return text + (", governor " + governor if governor else "")


def memory_facts():
    shm = os.statvfs("/dev/shm") if Path("/dev/shm").is_dir() else None
    huge = re.search(r"\[(\w+)\]", read("/sys/kernel/mm/transparent_hugepage/enabled"))
    return "%s%s%s" % (gigabytes(memory_bytes()),
                       ", /dev/shm %s" % gigabytes(shm.f_blocks * shm.f_frsize) if shm else "",
                       ", transparent huge pages: " + huge[1] if huge else "")


def vendor():
    """Of a cloud its name and the kind of machine, mostly."""
    return " ".join(filter(None, (read("/sys/class/dmi/id/sys_vendor"), read("/sys/class/dmi/id/product_name"))))


def system():
    name = re.search(r'^PRETTY_NAME="?(.*?)"?$', read("/etc/os-release"), re.M)
    return "%s, kernel %s" % (name[1] if name else platform.system(), platform.release())


# ---- disks ----

def mount_of(path):
    """Kind, source and options of the file system."""
    path, found = os.path.realpath(path), ("", "", "", "")
    for line in read("/proc/self/mountinfo").splitlines():
        first, _, second = line.partition(" - ")
        point = first.split()[4].encode().decode("unicode_escape")
        if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(found[0]):
            kind, source, options = (second.split() + ["", ""])[:3]
            found = (point, kind, source, first.split()[5] + "," + options)
    return found[1:]


def disks(block):
    """What lies under a block device in /sys, as text."""
    block = Path(block).resolve()
    if (block / "partition").exists():
        block = block.parent
    slaves = list(block.glob("slaves/*"))
    if slaves:
        return "%s of %s" % (read(block / "md/level") or "device mapper", "; ".join(sorted(disks(s) for s in slaves)))
    kind = "NVMe" if block.name.startswith("nvme") else "rotating" if read(block / "queue/rotational") == "1" else "not rotating"
    return "%s%s, %s" % (read(block / "device/model") + " " if read(block / "device/model") else "", kind,
                         gigabytes(int(read(block / "size", "0")) * 512))


def disk(path):
    kind, source, options = mount_of(path)
    numbers = os.stat(path).st_dev
    if source.startswith("/dev/") and Path(source).exists():
        numbers = os.stat(source).st_rdev
    block = Path("/sys/dev/block/%d:%d" % (os.major(numbers), os.minor(numbers)))
    kept = sorted({option for option in options.split(",") if OPTIONS.match(option)})
    return "%s; file system %s (%s), %s free" % (
        disks(block) if block.exists() else "unknown disk", kind, ", ".join(kept), gigabytes(free_bytes(path)))


def free_bytes(path):
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize


def flush_microseconds(directory):
    """Median time until 8 kB are on disk."""
    path = Path(directory) / "flush"
    times, until = [], time.monotonic() + 1
    with open(path, "wb", buffering=0) as file:
        file.write(bytes(8192 * SYNCS))
        os.fsync(file.fileno())
        file.seek(0)
        while len(times) < SYNCS and time.monotonic() < until:
            start = time.perf_counter()
            file.write(bytes(8192))
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    path.unlink()
    return sorted(times)[len(times) // 2] * 1e6


def facts(directory):
    """[name, text]; the directory is where the data is to be, None if that is not known."""
    rows = [("machine", vendor() or "unknown"), ("processor", processor_facts()), ("memory", memory_facts()),
            ("system", system())]
    if directory:
        rows += [("disk", disk(directory)), ("flush of 8 kB", "%.0f µs" % flush_microseconds(directory))]
    return rows
