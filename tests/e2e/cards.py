"""Workers with emulated cards, as real daemons: longhauld_emulated, whose machine its environment
describes (compute/backend/cuda/emulated/environment.h).
"""

import subprocess

from harness import BIN, Cluster, Failure, wait_for


class CardCluster(Cluster):
    """A coordinator, and workers with cards of one emulated host."""

    def machine(self, **variables):
        """Environment of a worker; devices, driver, capability, memory_mebibytes, breaks, and what
        else it is given in capitals.
        """
        named = {key if key.isupper() else f"LONGHAUL_EMULATED_{key.upper()}": str(value)
                 for key, value in variables.items()}
        return {"LONGHAUL_EMULATED_NAME": str(self.folder), **named}

    def watched(self):
        """Environment of a worker whose card can be asked; say() sets the answers."""
        return {"LD_LIBRARY_PATH": str(BIN / "fake_nvml"), "FAKE_NVML": str(self.folder / "nvml")}

    def say(self, answers):
        whole = self.folder / "nvml.new"
        whole.write_text(answers)
        whole.rename(self.folder / "nvml")

    def card_config(self, name, card=0, extra=""):
        return (f"name: {name}\nsite: here\ncoordinator: 127.0.0.1:{self.port}\n"
                f"folder: {self.folder}/{name}\ndevice: cuda:{card}\n"
                f"cluster_token_file: {self.token}\n{extra}")

    def start_card_worker(self, name, card=0, extra="", **machine):
        self._spawn("worker", name, self.card_config(name, card, extra),
                    program="longhauld_emulated", environment=self.machine(**machine))

    def printed(self, program, *arguments):
        return subprocess.run([BIN / program, *arguments], stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    def node(self, name):
        return next(node for node in self.nodes() if node["node"] == name)

    def ended(self, name, code, *parts, seconds=60):
        """The worker's process ends by itself with `code`, and its log has the parts."""
        process = self.processes[name]
        wait_for(f"{name} ends", lambda: process.poll() is not None, seconds)
        log = (self.folder / f"{name}.log").read_text()
        print(f"  {name}: {process.returncode}: {log.strip().splitlines()[-1][:220]}", flush=True)
        if process.returncode != code:
            raise Failure(f"{name} ended with {process.returncode}, not {code}")
        for part in parts:
            if part not in log:
                raise Failure(f"no '{part}' in the log of {name}: {log}")
