"""A progress line on standard error: redrawn on a terminal, now and then on a pipe."""
import sys
import time

_WIDTH = 24


def seconds_text(seconds):
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Progress:
    def __init__(self, total_bytes):
        self._total = max(total_bytes, 1)
        self._terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        # A short run on a pipe says nothing.
        self._drawn = -1e9 if self._terminal else self._started
        self._open = False

    def update(self, done, tokens):
        now = time.monotonic()
        if now - self._drawn < (0.1 if self._terminal else 5.0):
            return
        self._drawn = now
        self._draw(done, tokens, now - self._started)

    def _draw(self, done, tokens, seconds):
        share = min(done / self._total, 1.0)
        filled = int(share * _WIDTH)
        line = (f"prepare [{'#' * filled}{'.' * (_WIDTH - filled)}] {done >> 20}/"
                f"{self._total >> 20} MiB  {tokens / max(seconds, 1e-9):.3g} tokens/s")
        if 0 < share < 1:
            line += f"  ETA {seconds_text(seconds / share - seconds)}"
        sys.stderr.write(f"\r\x1b[K{line}" if self._terminal else line + "\n")
        sys.stderr.flush()
        self._open = self._terminal

    def close(self):
        if self._open:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._open = False
