"""What daemons of a test say about themselves."""

import os
import re
import socket
import threading


class Status:
    """What the daemons that are started within it tell the service manager about themselves."""

    def __init__(self, folder):
        self.texts = []
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self):
        while True:
            try:
                self.texts.append(self.socket.recv(65536).decode(errors="replace"))
            except OSError:
                return

    def __enter__(self):
        os.environ["NOTIFY_SOCKET"] = self.path
        return self

    def __exit__(self, kind, value, trace):
        del os.environ["NOTIFY_SOCKET"]

    def steps_alone(self, run, stage):
        """Steps of the run that the worker with the stage was at without the coordinator."""
        said = re.compile(rf"run {run} stage {stage} step (\d+), .*not part of the cluster")
        return {int(found[1]) for found in map(said.search, list(self.texts)) if found}
