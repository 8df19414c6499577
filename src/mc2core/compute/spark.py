"""Spark in this process: requirements, one shared context, and errors reported in one sentence."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mc2core.base import extras

#: property of this package: a folder that every executor can read and this process can write to
FOLDER = "spark.mc2core.folder"
# default values of Spark properties
_USUAL = {
    "spark.master": "local[*]",
    "spark.app.name": "mc2core",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # a worker on which tasks fail repeatedly, as on a full disk, gets no further tasks
    "spark.excludeOnFailure.enabled": "true",
    "spark.log.level": "OFF",
}
#: prefix of our error messages on executors, by which they are found in Spark's output
MARK = "mc2core: "

_given: dict[str, str] = {}
_started: list[Any] = []
_scratch: list[str] = []


class SparkFailed(OSError):
    """Spark failed; the message is one sentence."""


def missing() -> str | None:
    """Return a sentence that names the missing requirement of Spark and how to install it; None if none is missing."""
    if lack := extras.lacking("pyspark", extra="spark", purpose="Spark"):
        return lack
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and (Path(home) / "bin/java").is_file())):
        return "Spark needs Java 17, which is not on the PATH or in JAVA_HOME; Debian: openjdk-17-jre-headless"
    return None


@contextmanager
def session(properties: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Set Spark properties (``spark.master``, ``spark.executor.memory``, ...) for the contexts started in the block.

    The context is started at its first use and stopped at the end of the block. A context that is already running, for
    example under spark-submit, is used without changes and is not stopped.
    """
    unknown = [name for name in properties or {} if not str(name).startswith("spark.")]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a property of Spark; names of Spark properties begin with 'spark.'")
    before = dict(_given)
    _given.clear()
    _given.update({name: _text(value) for name, value in (properties or {}).items()})
    try:
        yield
    finally:
        _given.clear()
        _given.update(before)
        stop()


def context() -> Any:
    """Return the running SparkContext, or start one with the properties of :func:`session`.

    Raises SparkFailed if Java or pyspark is missing, or if the master cannot be reached.
    """
    if lack := missing():
        raise SparkFailed(lack)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark warns about pandas versions, but pandas is not used with Spark here
        from pyspark import SparkConf, SparkContext

        running = SparkContext._active_spark_context
        if running is not None:
            return running
        conf = SparkConf()
        for name, value in (_USUAL | _given).items():
            if name in _given or not conf.contains(name):
                conf.set(name, value)
        with in_a_sentence("Spark does not start"), _own_signals():
            _started.append(SparkContext(conf=conf))
    _started[-1].setLogLevel(_given.get("spark.log.level", _USUAL["spark.log.level"]))
    return _started[-1]


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore the handler of SIGINT after the block, because pyspark's handler raises inside calls of the JVM."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def stop() -> None:
    """Stop the context if this process started it."""
    while _started:
        _started.pop().stop()
    while _scratch:
        shutil.rmtree(_scratch.pop(), ignore_errors=True)


def folder() -> Path:
    """Return the folder of the property FOLDER, or a temporary folder, which other machines cannot read."""
    there = context().getConf().get(FOLDER)
    if there:
        return Path(there).absolute()
    if not _scratch:
        _scratch.append(tempfile.mkdtemp(prefix="mc2core-spark-"))
    return Path(_scratch[0])


@contextmanager
def in_a_sentence(what: str) -> Iterator[None]:
    """Raise Spark errors as one sentence: our message on an executor (see MARK), or the cause that Spark reports."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("py4j", "pyspark"):
            raise
        text = str(error)
        own = re.findall(rf"{MARK}(.*)", text)
        if own:
            raise ValueError(own[-1].strip()) from None
        raise SparkFailed(f"{what}: {_first_cause(text)}") from None


def _first_cause(text: str) -> str:
    """Return the last cause named in Spark's error text, or the first line of the text if it names no cause."""
    causes = re.findall(r"Caused by: (.*)", text) or re.findall(r"^(?:: )?(\S*(?:Exception|Error): .*)", text, re.M)
    return (causes[-1] if causes else text.partition("\n")[0]).strip()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def marked(work: Callable[[], Any], where: str) -> Any:
    """Run ``work()`` on an executor; errors are raised with MARK, ``where`` and the host for :func:`in_a_sentence`."""
    import socket

    try:
        return work()
    except (ValueError, OSError) as error:
        sentence = " ".join(str(error).split())
        raise RuntimeError(f"{MARK}{where} on {socket.gethostname()}: {sentence}") from None
