// The daemon's log: one line an entry on stderr, a sentence and key=value fields.
#ifndef LONGHAUL_DAEMON_LOG_H_
#define LONGHAUL_DAEMON_LOG_H_

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace longhaul::daemon {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// One key=value of a line. Values with spaces or quotes are quoted.
struct LogField {
  absl::string_view key;
  std::string value;
};

enum class LogStyle {
  kTime,      // "2026-01-02T03:04:05.678Z warning node lost node=b1"
  kPriority,  // "<4>node lost node=b1", which the journal turns into its own time and priority
};

// kPriority where the process's stderr is the journal (systemd sets JOURNAL_STREAM), else kTime.
LogStyle StyleFromEnvironment();

// The line without its end. Control characters of `message` and values, which may come from peers,
// are escaped, so that an entry is always one line and cannot command a terminal.
std::string FormatLogLine(absl::string_view message, std::initializer_list<LogField> fields);

// Thread-safe.
class Log {
 public:
  Log(LogStyle style, LogLevel level);
  // To `sink` (whole lines) instead of stderr; for tests. `sink` must be thread-safe.
  Log(LogStyle style, LogLevel level, std::function<void(const std::string&)> sink);
  ~Log();

  void Write(LogLevel level, absl::string_view message,
             std::initializer_list<LogField> fields = {}) const;
  void Debug(absl::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Info(absl::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Warning(absl::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Error(absl::string_view message, std::initializer_list<LogField> fields = {}) const;

  // Entries below the level are dropped; may be changed at any time.
  void SetLevel(LogLevel level);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_LOG_H_
