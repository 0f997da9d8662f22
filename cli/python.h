// The Python that the tokenizers library runs in.
#ifndef LONGHAUL_CLI_PYTHON_H_
#define LONGHAUL_CLI_PYTHON_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longhaul::cli {

struct PythonOptions {
  bool needs_tokenizers = true;
  bool install = false;
  std::string folder;  // of our own virtual environment
};

// A Python that can do what is asked: $LONGHAUL_PYTHON alone if that is set, else `python3`, else
// our virtual environment. If none has the library and `install` is set, makes the environment with
// `python3 -m venv` and pip and says so on standard error. FailedPrecondition says what is missing
// and how to get it.
absl::StatusOr<std::string> FindPython(const PythonOptions& options);

// Becomes the program `arguments[0]`: returns only if that fails.
absl::Status Become(const std::vector<std::string>& arguments);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_PYTHON_H_
