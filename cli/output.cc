#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/text_escape.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {

std::string Printable(absl::string_view text) { return EscapeControls(text, Newlines::kKept); }

void Print(absl::string_view text) {
  if (!OutputGood()) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return;
  }
  std::fprintf(stderr, "longhaul: cannot write to standard output: %s\n", std::strerror(errno));
}

bool OutputGood() { return std::ferror(stdout) == 0; }

void ReserveStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is taken, which is this one.
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

void PrintTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], EscapeControls(row[c], Newlines::kEscaped).size());
    }
  }
  std::string lines;
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string cell = EscapeControls(row[c], Newlines::kEscaped);
      absl::StrAppend(&lines, cell);
      if (c + 1 < row.size()) lines.append(widths[c] - cell.size() + 2, ' ');
    }
    lines += '\n';
  }
  Print(lines);
}

std::string Shortened(absl::string_view text, size_t bytes_max) {
  constexpr absl::string_view kCut = "...";
  const absl::string_view line = text.substr(0, text.find('\n'));
  if (line.size() == text.size() && text.size() <= bytes_max) return std::string(text);
  size_t kept = std::min(line.size(), bytes_max - kCut.size());
  if (kept < line.size()) {
    const size_t blank = line.rfind(' ', kept);
    if (blank != absl::string_view::npos && blank > kept / 2) kept = blank;
    // Not in the midst of a character of UTF-8.
    while (kept > 0 && (static_cast<unsigned char>(line[kept]) & 0xC0) == 0x80) --kept;
  }
  return absl::StrCat(line.substr(0, kept), kCut);
}

void PrintJsonLine(const nlohmann::ordered_json& object) {
  Print(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string FormatBytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  // Below what would be shown as 1024.0.
  while (bytes >= (unit == 0 ? 1024 : 1023.95) && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%.0f B", bytes)
                   : absl::StrFormat("%.1f %s", bytes, kUnits[unit]);
}

std::string FormatRate(double per_second) {
  if (per_second >= 999'950) return absl::StrFormat("%.2fM", per_second / 1e6);
  if (per_second >= 9'999.5) return absl::StrFormat("%.1fk", per_second / 1e3);
  return absl::StrFormat("%.0f", per_second);
}

std::string FormatSeconds(double seconds) {
  // What would not be shown as 1000 ms.
  if (seconds < 0.9995) return absl::StrFormat("%.3g ms", seconds * 1e3);
  if (seconds < 10) return absl::StrFormat("%.1f s", seconds);
  constexpr double kWholeMax = 1e15;
  if (!(seconds < kWholeMax)) return absl::StrFormat("%g s", seconds);
  const int64_t whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

ProgressBar::ProgressBar(std::string label, uint64_t total, std::string unit)
    : label_(std::move(label)),
      total_(total),
      unit_(std::move(unit)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      started_(RealClock().Now()),
      drawn_(absl::InfinitePast()) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && seen_) std::fputc('\n', stderr);
}

void ProgressBar::Update(uint64_t done, absl::string_view note) {
  const absl::Time now = RealClock().Now();
  if (!seen_) first_ = done;
  const absl::Duration interval = terminal_ ? absl::Milliseconds(100) : absl::Seconds(5);
  if (seen_ && done < total_ && now - drawn_ < interval) return;
  seen_ = true;
  drawn_ = now;
  Draw(done, note, now);
}

void ProgressBar::Draw(uint64_t done, absl::string_view note, absl::Time now) {
  const double share =
      done >= total_ ? 1.0 : static_cast<double>(done) / static_cast<double>(total_);
  std::string eta;
  if (done > first_ && done < total_) {
    const double per_unit =
        absl::ToDoubleSeconds(now - started_) / static_cast<double>(done - first_);
    eta = absl::StrCat("  ETA ", FormatSeconds(per_unit * static_cast<double>(total_ - done)));
  }
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(share * kWidth);
  const std::string line =
      absl::StrFormat("%s [%s%s] %d/%d %s  %s%s", label_, std::string(filled, '#'),
                      std::string(kWidth - filled, '.'), done, total_, unit_, note, eta);
  std::fprintf(stderr, terminal_ ? "\r\x1b[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace longhaul::cli
