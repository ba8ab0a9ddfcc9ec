#!/usr/bin/python3
"""The packages in a bare system: a root of Debian's essential packages is made from this machine's
own sources of apt, the package is put in, and the first things that people type are run there.
The same for the two recipes of containers."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path.insert(0, os.path.join(TREE, "scripts/packaging"))
import tree
SECONDS = 900  # bounds a hang; the network may be slow
# Its own processes, devices and mounts end with the command.
_INSIDE = """set -e
mount -t proc proc "$0/proc"
mount -t sysfs -o ro sysfs "$0/sys"
mount --bind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/dev/shm"
exec chroot "$0" timeout -k 10 600 sh -c "$1"
"""
_UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
# Of the MPI that the programs were built for: its launcher, our package, its own.
_LIBRARY = tree.mpi_of([os.path.realpath("cli/lockstep")])
_MPIRUN, _PACKAGE, _MPI_PACKAGE = {
    "libmpi.so.40": ("mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np 2",
                     "lockstep", "openmpi-bin"),
    "libmpich.so.12": ("mpiexec.mpich -n 2", "lockstep-mpich", "mpich")}[_LIBRARY]
_AT = "cd /tmp && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; "
_PLAN = """backends = ["mpi", "gloo"]
[[step]]
name = "latency"
program = "bench_allreduce"
arguments = ["-b", "8", "-e", "64", "-n", "20", "-w", "2"]
seconds = 5
[[step]]
name = "uneven inputs"
kind = "stress"
scenarios = ["uneven_inputs/case1"]
seconds = 10
[[step]]
name = "fuzz"
kind = "fuzz"
seconds = 2
"""
# Without PYTHONPATH.
_READ = """import lockstep
with lockstep.open("a.h5") as run:
    print(lockstep.__version__, run.verdict == "pass")
    print(run.summary.to_string())
"""
# What bash offers behind what was typed, a word a line.
_COMPLETE = """. /usr/share/bash-completion/bash_completion
COMP_WORDS=(%s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_completion_loader "${COMP_WORDS[0]}"
[[ "$(complete -p "${COMP_WORDS[0]}")" == *"-F _lockstep "* ]] && _lockstep
printf '%%s\\n' "${COMPREPLY[@]}"
"""


def sources():
    """The sources of Debian's packages, as this machine has them: (code name, lines)."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format",
         "$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
        capture_output=True, text=True, check=False)
    lines = sorted({line.split(" ", 1)[1] for line in done.stdout.splitlines()
                    if line.startswith("Debian deb ")})
    names = [line.split()[2] for line in lines]
    return min(names, key=len) if names else None, "\n".join(lines) + "\n"


def impossible():
    """Why no root can be made here, or None."""
    if os.geteuid() != 0:
        return "only root makes a root"
    if shutil.which("mmdebstrap") is None:
        return "no mmdebstrap: apt-get install mmdebstrap"
    if sources()[0] is None:
        return "apt-get indextargets names no source of Debian: apt-get update"
    probe = subprocess.run(_UNSHARE + ["true"], capture_output=True, check=False)
    return None if probe.returncode == 0 else "no namespaces are permitted here"


def mmdebstrap(*words):
    """Debian's essential packages, from this machine's sources; skips without a network."""
    release, lines = sources()
    done = subprocess.run(
        ["timeout", "-k", "20", str(SECONDS), "mmdebstrap", "--mode=root", *words[:-1], release,
         words[-1], "-"], input=lines, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
        if any("Failed to fetch" in line or "Could not resolve" in line for line in said):
            raise unittest.SkipTest("no network: " + said[0])
        raise AssertionError("mmdebstrap: " + "\n".join(said or [done.stderr[-800:]]))


class BareRoot:
    """A folder that is a system, with these packages; a package may be a path."""

    def __init__(self, packages):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        os.chmod(self.folder, 0o755)
        self.path = os.path.join(self.folder, "root")
        files = [path for path in packages if path.startswith("/")]
        words = ["/tmp/" + os.path.basename(one) if one in files else one for one in packages]
        hooks = ["--customize-hook=upload %s /tmp/%s" % (path, os.path.basename(path))
                 for path in files]
        hooks += ["--customize-hook=chroot \"$1\" apt-get install --yes --no-install-recommends " +
                  " ".join(words)]
        try:
            mmdebstrap("--variant=apt", *hooks, self.path)
        except BaseException:
            self.remove()
            raise

    def run(self, command):
        done = subprocess.run(_UNSHARE + ["sh", "-c", _INSIDE, self.path, command],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"})
        print("%3d  %s" % (done.returncode, command), flush=True)
        return done

    def write(self, path, text):
        with open(os.path.join(self.path, path.lstrip("/")), "w", encoding="utf-8") as file:
            file.write(text)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def packaged(kind, folder):
    done = subprocess.run([os.path.join(TREE, "scripts/package"), kind, "--output-folder=" + folder,
                           "--built=" + os.getcwd()], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


@unittest.skipIf(impossible(), impossible())
class BareRootTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)  # apt reads packages as a user of its own

    def root(self, packages):
        root = BareRoot(packages)
        self.addCleanup(root.remove)
        return root

    def must(self, root, command, codes=(0,), says="(?s).*"):
        done = root.run(command)
        self.assertIn(done.returncode, codes, done.stdout[-1500:] + done.stderr[-1500:])
        self.assertRegex(done.stdout + done.stderr, says)
        self.assertNotIn("Traceback", done.stderr)

    def use(self, root, before=""):
        """What somebody types who has just installed it."""
        at = _AT + before
        root.write("/tmp/plan.toml", _PLAN)
        root.write("/etc/hosts", "127.0.0.1 localhost %s\n" % os.uname().nodename)
        self.must(root, at + "lockstep --version", says="lockstep")
        self.must(root, at + "lockstep doctor", codes=(0, 1))
        self.must(root, at + _MPIRUN + " bench_allreduce -b 8 -e 1M -n 20 "
                  "--output=a.h5", says="PASS: ")
        self.must(root, at + "lockstep stress --ranks=2 --scenario=uneven_inputs/case1",
                  says="PASS: ")
        self.must(root, at + _MPIRUN + " lockstep-stress "
                  "--scenario=uneven_inputs/case1",
                  says="PASS: ")
        self.must(root, at + "lockstep nightly plan.toml --output-folder=night",
                  says="(?m)^QUALIFIED")
        self.must(root, at + "lockstep show a.h5", says="all_reduce")
        self.must(root, at + "lockstep report a.h5 --output=a.html && grep -q '</html>' a.html")
        self.must(root, at + "lockstep watch -- " + _MPIRUN + " bench_barrier -n 5")

    def test_deb(self):
        package = packaged("deb", self.folder)
        root = self.root([package])
        for name in ("stress", "fuzz", "g++", "bazel"):
            self.must(root, "command -v " + name, codes=(1, 127))
        self.use(root)
        # Whether this machine is fit is not asked here: every step of the profile has an answer.
        self.must(root, _AT + "lockstep nightly --profile=quick --output-folder=quick",
                  codes=(0, 1, 3), says=r"(?m)^[A-Z ]+: plan quick, 2 ranks, mpi\+gloo; ")
        with open(root.path + "/tmp/quick/verdict.json", encoding="utf-8") as file:
            answer = json.load(file)
        self.assertLessEqual({"latency.mpi", "bandwidth.gloo", "barrier.mpi", "ddp_step.gloo",
                              "catalogue.mpi", "catalogue.gloo", "simulation", "fuzz"},
                             {key for key, passed in answer["passed"].items() if passed}, answer)
        root.write("/tmp/read.py", _READ)
        self.must(root, "cd /tmp && python3 read.py",
                  says=rf"(?s)\A{re.escape(tree.version())} True\n.*all_reduce/")
        self.read_pages(root)
        self.must(root, f"dpkg --purge {_PACKAGE} && ! command -v lockstep")
        self.must(root, "ls -d /usr/libexec/lockstep /usr/lib/python3/dist-packages/lockstep "
                  "/usr/share/lockstep", codes=(2,))

    def read_pages(self, root):
        """With the programs that show them, which a bare system lacks."""
        shutil.copy("/etc/resolv.conf", os.path.join(root.path, "etc/resolv.conf"))
        self.must(root, "apt-get update && apt-get install --yes --no-install-recommends man-db "
                  "bash-completion zsh environment-modules")
        for page in ("lockstep", "lockstep-nightly", "bench_allreduce"):
            self.must(root, f"MANPAGER=cat man {page}", says="SYNOPSIS")
        for typed, offered in (("lockstep nigh", "nightly"),
                               ("lockstep stress --scen", "--scenario"),
                               ("bench_allreduce --mod", "--model")):
            root.write("/tmp/complete.bash", _COMPLETE % typed)
            self.must(root, "bash /tmp/complete.bash", says=rf"\A{offered}\n\Z")
        self.must(root, "mkdir -p /tmp/modules/lockstep && "
                  "cp /usr/share/lockstep/examples/lockstep.modulefile /tmp/modules/lockstep/1 && "
                  "bash -c '. /etc/profile.d/modules.sh && module use /tmp/modules && "
                  "module load lockstep && echo $LOCKSTEP_ROOT'", says=r"(?m)^/usr$")
        self.must(root, "zsh -fc 'autoload -Uz compinit; compinit -u -D; echo $_comps[lockstep]'",
                  says=r"\A_lockstep\n\Z")

    def test_tarball(self):
        package = packaged("tarball", self.folder)
        root = self.root(["python3-h5py", "python3-jinja2", "python3-pandas"])
        place = os.path.join(root.path, "srv/some where")
        os.mkdir(place)
        subprocess.run(["tar", "-xf", package, "-C", place, "--strip-components=1"], check=True)
        self.must(root, "'/srv/some where/bin/bench_allreduce'", codes=(4,),
                  says=rf"\Abench_allreduce: this machine lacks {_LIBRARY}.* - install .*\n\Z")
        self.must(root, "'/srv/some where/bin/lockstep-fuzz' --trials=10", says="10 trials")
        shutil.copy("/etc/resolv.conf", os.path.join(root.path, "etc/resolv.conf"))
        self.must(root, "apt-get update && "
                  f"apt-get install --yes --no-install-recommends {_MPI_PACKAGE}")
        self.use(root, before='PATH="/srv/some where/bin:$PATH"; ')

    @unittest.skipIf(_PACKAGE != "lockstep", "the recipes are for Open MPI")
    def test_apptainer_definition(self):
        """Its sections, in the order in which Apptainer runs them; Debian 12 lacks Apptainer."""
        with open(os.path.join(TREE, "scripts/packaging/lockstep.def"), encoding="utf-8") as file:
            parts = re.split(r"(?m)^%(\w+)\n", file.read())
        sections = dict(zip(parts[1::2], parts[2::2]))
        self.assertEqual(["files", "post", "test", "runscript"], list(sections))
        root = self.root([])
        (pattern, target), = (line.split() for line in sections["files"].strip().splitlines())
        package, = glob.glob(os.path.join(os.path.dirname(packaged("deb", self.folder)), pattern))
        shutil.copy(package, root.path + target)
        shutil.copy("/etc/resolv.conf", root.path + "/etc/resolv.conf")
        self.must(root, "set -e\n" + sections["post"])
        self.must(root, "! ls " + os.path.join(target, pattern))
        self.must(root, sections["test"], says="lockstep [0-9]")
        self.must(root, "set -- show --help\n" + sections["runscript"], says="Usage: lockstep show")

    @unittest.skipIf(_PACKAGE != "lockstep", "the recipes are for Open MPI")
    @unittest.skipIf(shutil.which("buildah") is None, "no buildah: apt-get install buildah")
    def test_dockerfile(self):
        packaged("deb", self.folder)
        mmdebstrap("--variant=minbase", self.folder + "/debian.tar")
        recipe = os.path.join(TREE, "scripts/packaging/Dockerfile")
        with open(recipe, encoding="utf-8") as file:
            command, = re.findall("(?m)^#   docker run .* lockstep (mpirun .*)$", file.read())

        def buildah(*words, says="(?s).*"):
            done = subprocess.run(
                ["timeout", "-k", "20", str(SECONDS), "buildah", "--root", self.folder + "/store",
                 "--runroot", self.folder + "/run", *words],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual(0, done.returncode, done.stdout[-1500:] + done.stderr[-1500:])
            self.assertRegex(done.stdout, says)
            return done.stdout.strip()

        empty = buildah("from", "scratch")
        buildah("add", empty, self.folder + "/debian.tar", "/")
        buildah("commit", "--rm", empty, "docker.io/library/debian:12-slim")
        buildah("bud", "--pull-never", "--isolation=chroot", "-f", recipe, "-t", "lockstep",
                self.folder)
        image = buildah("from", "--pull-never", "localhost/lockstep")
        self.addCleanup(buildah, "rm", "--all")
        buildah("run", "--isolation=chroot", image, "--", *command.split(), says="(?m)^PASS: ")


if __name__ == "__main__":
    unittest.main()
