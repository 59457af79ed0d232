"""Modules that Python imports only when they are first needed.

An SSH server that has entered its sandbox may not see the files of its own interpreter any more, so all
it will ever import must be imported before. Importing this module does it.
"""

from __future__ import annotations

import concurrent.futures.thread
import encodings.ascii
import encodings.idna
import encodings.latin_1
import encodings.utf_8
import grp
import pwd
import queue
import stringprep
import tempfile
import traceback

PRELOADED = (
    concurrent.futures.thread,
    encodings.ascii,
    encodings.idna,
    encodings.latin_1,
    encodings.utf_8,
    grp,
    pwd,
    queue,
    stringprep,
    tempfile,
    traceback,
)
