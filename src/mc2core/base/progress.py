"""Progress bars that do not wait for other processes."""

from __future__ import annotations

import threading

from tqdm import tqdm


class Bar(tqdm):
    """A tqdm bar whose lock is this process's own.

    tqdm's lock is shared with forked processes: one of them that is killed while it holds it stops all others for ever,
    even where no bar is shown.
    """


Bar.set_lock(threading.RLock())
