"""Log file and limit on threads for jobs of the workflow and for commands."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadpoolctl import threadpool_limits

from mc2core.base import progress, stopping

LINE = "%(asctime)s %(name)s %(levelname)s %(message)s"


@contextmanager
def job(log: str | os.PathLike[str], threads: int = 1) -> Iterator[None]:
    """Run a block with its log written to ``log`` and BLAS limited to ``threads`` threads.

    An exception is written to the log with its traceback and raised again. For wrong input (ValueError, OSError) and
    too little memory, the log and the exit message contain only the message of the error. Ctrl-C ends the job with exit
    code 130. Progress of long work is written to the log.
    """
    path = Path(log)
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter(LINE))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with (
            threadpool_limits(threads),
            stopping.install(),
            progress.showing(write=progress.logger.info),
            progress.work("job"),
        ):
            yield
    except (ValueError, OSError) as error:
        root.error("%s", error)
        raise SystemExit(f"Error: {error}") from error
    except (KeyboardInterrupt, SystemExit) as stop:  # SIGINT, SIGTERM
        root.warning("interrupted")
        raise SystemExit(stop.code if isinstance(stop, SystemExit) else 130) from None
    except MemoryError as error:
        root.error("there is not enough memory: %s", error)
        raise SystemExit(f"Error: there is not enough memory: {error}") from error
    except BaseException:
        root.exception("failed")
        raise
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()
