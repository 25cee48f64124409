"""E-mail addresses, package names and paths, a table of each."""
import gzip
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "test" / "data"
NAMES = ("emails", "package_names", "paths")


def sample_text(name, directory=None):
    """A line for each sample."""
    with gzip.open(Path(directory or DATA) / (name + ".txt.gz"), "rt", encoding="utf-8") as lines:
        return lines.read()


def load_samples(server, schema, directory=None):
    """Tables of these names with columns n, from 0 on, and s, without any \\ or "."""
    for name in NAMES:
        server.psql("CREATE TABLE %s (n int GENERATED ALWAYS AS IDENTITY (START 0 MINVALUE 0) PRIMARY KEY, s text)" % name,
                    schema=schema)
        server.psql("COPY %s (s) FROM STDIN" % name, schema=schema,
                    stdin=sample_text(name, directory).replace("\\", "/").replace('"', "'"))
        server.psql("ANALYZE %s" % name, schema=schema)
