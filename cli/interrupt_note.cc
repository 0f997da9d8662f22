#include "cli/interrupt_note.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "cli/output.h"

namespace longhaul::cli {
namespace {

// A handler has no argument that could carry it.
std::atomic<const std::string*> last_line{nullptr};

extern "C" void OnInterrupt(int number) {
  const std::string* line = last_line.load();
  if (line != nullptr) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line->data(), line->size());
  }
  // The default action is in force again (SA_RESETHAND) and comes once this returns.
  raise(number);
}

}  // namespace

// A terminal shows ^C in the line of a progress bar.
InterruptNote::InterruptNote(const std::string& text)
    : line_(absl::StrCat(::isatty(STDERR_FILENO) == 1 ? "\n" : "", "longhaul: ", Printable(text),
                         "\n")) {
  LH_CHECK(last_line.exchange(&line_) == nullptr, "there is an interrupt note already");
  ::sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESETHAND;
  ::sigaction(SIGINT, &action, nullptr);
}

InterruptNote::~InterruptNote() {
  ::sigaction(SIGINT, &before_, nullptr);
  last_line.store(nullptr);
}

}  // namespace longhaul::cli
