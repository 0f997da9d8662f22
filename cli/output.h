// What people and scripts read: aligned tables, JSON lines, a progress bar.
#ifndef LONGHAUL_CLI_OUTPUT_H_
#define LONGHAUL_CLI_OUTPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json_fwd.hpp"

namespace longhaul::cli {

// Writes to standard output at once, so that a pipe's reader sees it. The first write that fails is
// said on stderr. Not thread-safe.
void Print(absl::string_view text);

// False once a write to standard output has failed: the program then ends with kExitFailed, soon.
bool OutputGood();

// Opens /dev/null in place of each standard stream that is closed, so that no file or connection
// takes its number; writing to standard output then fails as it should. To be called first.
void ReserveStandardStreams();

// Columns padded to their widest cell; the first row, the headings, is written in capitals.
// Control characters in cells are escaped, since names and reasons come from other machines.
void PrintTable(const std::vector<std::vector<std::string>>& rows);

// Text from another machine, safe for a terminal.
std::string Printable(absl::string_view text);

// The first line of `text`, cut where a word ends to at most `bytes_max` bytes; "..." stands where
// something was left out. `bytes_max` is at least 4.
std::string Shortened(absl::string_view text, size_t bytes_max);

// One object on one line.
void PrintJsonLine(const nlohmann::ordered_json& object);

std::string FormatBytes(double bytes);      // "12.3 MiB"
std::string FormatRate(double per_second);  // "12.3k", "4.56M"
std::string FormatSeconds(double seconds);  // "42 s", "3 min 20 s"

// A bar that redraws itself on a terminal; on a pipe, a line now and then. Not thread-safe.
class ProgressBar {
 public:
  // `unit` is for the count ("steps", "MiB").
  ProgressBar(std::string label, uint64_t total, std::string unit);
  ~ProgressBar();  // ends the line
  // `note` stands behind the bar. Shows the estimated time to the end by the rate since the start.
  void Update(uint64_t done, absl::string_view note);

 private:
  void Draw(uint64_t done, absl::string_view note, absl::Time now);

  const std::string label_;
  const uint64_t total_;
  const std::string unit_;
  const bool terminal_;
  const absl::Time started_;
  uint64_t first_ = 0;
  bool seen_ = false;
  absl::Time drawn_;
};

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_OUTPUT_H_
