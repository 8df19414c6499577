"""SVI and Gibbs on a cluster of Spark whose parts are killed: the result is that of an undisturbed run.

One cluster serves all tests, and one run of each engine sees all faults that it is to outlive.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import numpy as np
import psutil
import pytest
from helpers.standalone import Standalone

from mc2core import Corpus
from mc2core.base import storage
from mc2core.compute import spark
from mc2core.inference.running.files import fit_corpus

pytestmark = [pytest.mark.slow, pytest.mark.needs("spark")]
SETTINGS = {
    "svi": {"document_level": False, "max_clusters": 4, "max_topics": 6, "batch_size": 80, "n_shards": 4},
    "gibbs": {"kernel": "parallel", "start_clusters": 1, "n_shards": 4},
}
#: epochs of five mini-batches, or sweeps after the 20 of the start
LENGTH = {"svi": 6, "gibbs": 8}
NO_SECOND_TRY = "spark.task.maxFailures=1", "spark.excludeOnFailure.enabled=false"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    rng = np.random.default_rng(1)
    rate = 0.1 + 2.0 * (np.arange(30) // 8 == rng.integers(4, size=400)[:, None])
    folder = tmp_path_factory.mktemp("faults") / "corpus"
    Corpus(rng.poisson(rate)).save(folder)
    return Corpus.load(folder)


@pytest.fixture(scope="module", params=["svi", "gibbs"])
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def undisturbed(engine, corpus, tmp_path_factory):
    """Arrays of the posterior of an undisturbed run: of SVI on two threads of Spark, of Gibbs in this process."""
    out = tmp_path_factory.mktemp("undisturbed")
    settings = SETTINGS[engine] | ({"n_shards": None} if engine == "gibbs" else {})
    fit_corpus(
        corpus, out, model="mc2", engine=engine, contexts={}, settings=settings, iterations=LENGTH[engine], seed=0,
        spark={"spark.master": "local[2]"}, keep_all=True, progress=False,
    )  # fmt: skip
    return results(out)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Of workers 1 and 2, which every test leaves there."""
    with Standalone(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def results(out):
    arrays = {name: array for name, array in storage.read_arrays(out / "posterior.npz").items() if name != "meta"}
    trace = np.genfromtxt(out / "trace.tsv", names=True)
    return arrays | {f"trace.{name}": trace[name] for name in trace.dtype.names if name != "seconds"}


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(one[name], other[name], equal_nan=True), name


@contextmanager
def running(engine, corpus, out, master, *more, length=None):
    """``mc2 fit`` in a process of its own."""
    properties = {"spark.master": master, spark.FOLDER: out / "shards", "spark.executor.memory": "600m"}
    given = [f"{name}={json.dumps(value)}" for name, value in SETTINGS[engine].items()]
    given += [*(f"{name}={value}" for name, value in properties.items()), *more]
    command = [
        sys.executable, "-m", "mc2core", "fit", str(corpus.content.data.filename.parent), "--engine", engine,
        "--out", str(out),
    ]  # fmt: skip
    command += ["--iterations", str(length or LENGTH[engine]), "--checkpoint-every", "1"]
    command += [word for one in given for word in ("--set", one)]
    with (out / "log").open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_row(process, out, row, seconds=600):
    """Until the trace has so many rows."""
    end = time.monotonic() + seconds
    while len((out / "trace.tsv").read_text().splitlines() if (out / "trace.tsv").is_file() else ()) <= row:
        assert process.poll() is None, (out / "log").read_text()
        assert time.monotonic() < end, "the run is too slow"
        time.sleep(0.02)


def below(process, word):
    """Processes that this one has started, and those have, with this word in their command line, the youngest last."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for one in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                found += [one] if word in " ".join(one.cmdline()) else []
    return sorted(found, key=lambda one: one.create_time())


def on_workers(cluster, word, least=1, seconds=60):
    """As :func:`below`, of the cluster's workers; waits until there are ``least``."""
    end = time.monotonic() + seconds
    while True:
        found = [one for worker in cluster.workers for one in below(worker, word)]
        if len(found) >= least:
            return found
        assert time.monotonic() < end, f"no {word} is running"
        time.sleep(0.02)


def kill(process):
    """``kill -9``, unless it has ended."""
    with suppress(psutil.NoSuchProcess):
        process.kill()


def finish(process, out, seconds=600):
    assert process.wait(seconds) == 0, (out / "log").read_text()


@contextmanager
def full_disk(folder):
    """A file system of 64 KiB at ``folder``, filled to the last byte; gives whether it could be mounted."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield False
        return
    try:
        (folder / "local").mkdir()
        (folder / "work").mkdir()
        with (folder / "filling").open("wb", buffering=0) as stream, suppress(OSError):
            while True:
                stream.write(bytes(4096))
        yield True
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Disturbed:
    """A run that loses a Python worker, an executor, a worker and its driver, and is resumed beside a full disk."""

    def __init__(self, engine, corpus, cluster, out, full):
        self.out = out
        with running(engine, corpus, out, cluster.master) as process:
            wait_for_row(process, out, 1)
            kill(on_workers(cluster, "pyspark.daemon")[-1])  # a Python worker
            wait_for_row(process, out, 2)
            kill(on_workers(cluster, "CoarseGrainedExecutorBackend", least=2)[0])
            wait_for_row(process, out, 3)
            cluster.kill_worker(2)
            wait_for_row(process, out, 4)
            (program,) = below(process, "SparkSubmit")
            of_run = [program, *on_workers(cluster, "CoarseGrainedExecutorBackend")]
            process.send_signal(signal.SIGKILL)  # the driver
            self.code = process.wait()
        self.outlive = psutil.wait_procs(of_run, timeout=60)[1]
        self.left = {path.name for path in out.iterdir()}
        with full_disk(cluster.folder / f"worker{full}") as self.disk_is_full:
            cluster.add_worker(full)
            with running(engine, corpus, out, cluster.master) as process:
                finish(process, out)
            self.log_of_full = (cluster.folder / f"worker{full}.log").read_text()
            cluster.kill_worker(full)
        cluster.add_worker(2)


@pytest.fixture(scope="module")
def disturbed(engine, corpus, cluster, tmp_path_factory):
    return Disturbed(engine, corpus, cluster, tmp_path_factory.mktemp("disturbed"), 3 + list(SETTINGS).index(engine))


def test_killed_parts_change_no_bit(disturbed, undisturbed):
    same(results(disturbed.out), undisturbed)


def test_a_killed_driver_leaves_a_checkpoint_and_no_executor(disturbed):
    assert disturbed.code == -signal.SIGKILL
    assert "checkpoint.npz" in disturbed.left
    assert "posterior.npz" not in disturbed.left
    assert not disturbed.outlive, "executors outlive their driver"
    assert not list((disturbed.out / "shards").rglob("step-*")), "what the killed driver left is still there"


def test_a_worker_with_a_full_disk_is_done_without(disturbed):
    """The run went on to its end, with the bits that the first test looks at."""
    if not disturbed.disk_is_full:
        pytest.skip("a full disk needs the right to mount file systems")
    assert "No space left on device" in disturbed.log_of_full


def test_a_missing_shard_ends_a_cluster_run_in_one_sentence(engine, corpus, cluster, tmp_path):
    with running(engine, corpus, tmp_path, cluster.master, length=400) as process:
        wait_for_row(process, tmp_path, 1)
        # not those of the documents that starts are compared on
        shutil.rmtree(tmp_path / "shards" / f"{corpus.digest[:16]}-4" / "00002")
        for one in on_workers(cluster, "pyspark.daemon"):  # those that had it open would go on; new ones look for it
            kill(one)
        assert process.wait(120) == 2
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert last.startswith("mc2: error: shard 00002 on "), last
    assert "corpus.json is missing" in last


def test_without_a_second_try_a_killed_worker_ends_the_run(corpus, cluster, tmp_path):
    """What the first test rests on, of any engine: Spark's recovery, which is switched off here."""
    with running("gibbs", corpus, tmp_path, cluster.master, *NO_SECOND_TRY, length=400) as process:
        wait_for_row(process, tmp_path, 1)
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            for one in on_workers(cluster, "pyspark.daemon", least=0):
                kill(one)
            time.sleep(0.05)
        assert process.wait(30) == 2
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert last.startswith("mc2: error: Spark gave up a step: "), last
