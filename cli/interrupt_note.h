// A last word when a person interrupts a command.
#ifndef LONGHAUL_CLI_INTERRUPT_NOTE_H_
#define LONGHAUL_CLI_INTERRUPT_NOTE_H_

#include <signal.h>

#include <string>

namespace longhaul::cli {

// While it lives, SIGINT writes "longhaul: <text>" on stderr and then ends the process as it would
// have done without (a shell sees 130). Nothing where the signal is ignored. One at a time in a
// process.
class InterruptNote {
 public:
  explicit InterruptNote(const std::string& text);
  ~InterruptNote();
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;

 private:
  const std::string line_;
  struct sigaction before_ = {};
};

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_INTERRUPT_NOTE_H_
