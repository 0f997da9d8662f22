"""Words that must not occur: clocks, sleeps, locks that ThreadSanitizer cannot see, impurity."""
import re

PURE = re.compile(r"(model|schedule|compression|coordinator/core|coordinator/plan)/")

# (pattern of code, files it is about, files that are exempt, what to do)
RULES = [
    (re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|SleepFor)\b|(?<![\w.>])sleep\s*\("),
     None, re.compile(r"base/clock\.cc$"),
     "no sleeping: wait for a condition with Clock::WaitUntil (base/clock.h)"),
    (re.compile(r"\b(system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday)\b"
                r"|\babsl::(Now|GetCurrentTimeNanos)\b"),
     # The service manager asks for a reading of the monotonic clock when a daemon reloads.
     None, re.compile(r"(base/clock|daemon/lifecycle)\.cc$"),
     "no real clocks: take a Clock (base/clock.h)"),
    (re.compile(r"\babsl::(Mutex|MutexLock|CondVar|Notification|BlockingCounter)\b"
                r"|absl/synchronization/"),
     None, None,
     "no Abseil locks: std::mutex and std::condition_variable, which ThreadSanitizer sees"),
    (re.compile(r"#\s*include\s*<(thread|mutex|shared_mutex|condition_variable|future|chrono|random"
                r"|iostream|cstdio|ctime)>|#\s*include\s*\"(base/clock\.h|spdlog/)"),
     PURE, re.compile(r".*(_test\.cc$|/fuzz_|/script_runner)"),
     "pure folders know no threads, clocks, randomness or output"),
    (re.compile(r"\b(RealClock|random_device|mt19937(_64)?|srand|fprintf|puts|cout|cerr|getenv)\b"
                r"|\bstd::(thread|mutex|async)\b|(?<![\w.>:])(printf|rand|time|clock)\s*\("
                r"|\bstd::(printf|rand|time|clock)\s*\("),
     PURE, re.compile(r".*(_test\.cc$|/fuzz_|/script_runner)"),
     "pure folders know no threads, clocks, randomness or output"),
    (re.compile(r"\b(cout|stdout)\b|(?<![\w.>:])(printf|puts|putchar)\s*\("
                r"|\bstd::(printf|puts|putchar)\s*\("),
     re.compile(r"cli/"), re.compile(r"cli/(output\.cc|.*_test\.cc)$"),
     "no unchecked output: Print (cli/output.h) notices what could not be written"),
]

_DIRECTIVE = re.compile(r"\s*#")


def check(root, files):
    for source in files:
        if not source.is_cpp:
            continue
        code = source.code.split("\n")
        for pattern, about, exempt, message in RULES:
            if about and not about.match(source.path):
                continue
            if exempt and exempt.match(source.path):
                continue
            for number, line in enumerate(code, 1):
                # Names of headers are strings, which `code` leaves out.
                text = source.lines[number - 1] if _DIRECTIVE.match(line) else line
                match = pattern.search(text)
                if match:
                    yield source.path, number, f"'{match.group(0).strip()}': {message}"
