#include "daemon/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/text_escape.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace longhaul::daemon {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// syslog(3) priorities, as sd-daemon(3) wants them in front of a line.
absl::string_view Priority(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "<7>";
    case LogLevel::kInfo:
      return "<6>";
    case LogLevel::kWarning:
      return "<4>";
    case LogLevel::kError:
      break;
  }
  return "<3>";
}

bool NeedsQuotes(absl::string_view value) {
  return value.empty() || value.find_first_of(" \"=\\\n\t") != absl::string_view::npos;
}

// Hands whole lines to a function.
class FunctionSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(const std::string&)> sink) : sink_(std::move(sink)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    sink_(std::string(line.data(), line.size()));
  }
  void flush_() override {}

 private:
  const std::function<void(const std::string&)> sink_;
};

}  // namespace

class Log::Impl {
 public:
  Impl(LogStyle style, LogLevel level, spdlog::sink_ptr sink)
      : style_(style), logger_("longhauld", std::move(sink)) {
    logger_.set_pattern(style == LogStyle::kPriority ? "%v" : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                        spdlog::pattern_time_type::utc);
    logger_.set_level(ToSpdlog(level));
    logger_.flush_on(spdlog::level::trace);
  }

  void Write(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
    if (!logger_.should_log(ToSpdlog(level))) return;
    std::string line(style_ == LogStyle::kPriority ? Priority(level) : "");
    line += FormatLogLine(message, fields);
    logger_.log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
  }

  void SetLevel(LogLevel level) { logger_.set_level(ToSpdlog(level)); }

 private:
  const LogStyle style_;
  spdlog::logger logger_;
};

LogStyle StyleFromEnvironment() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat stderr_stat;
  if (stream == nullptr || fstat(STDERR_FILENO, &stderr_stat) != 0) return LogStyle::kTime;
  // systemd.exec(5): the variable is inherited, so it counts only if it names our stderr.
  const bool ours = absl::StrCat(stderr_stat.st_dev, ":", stderr_stat.st_ino) == stream;
  return ours ? LogStyle::kPriority : LogStyle::kTime;
}

std::string FormatLogLine(absl::string_view message, std::initializer_list<LogField> fields) {
  std::string line = EscapeControls(message, Newlines::kEscaped);
  for (const LogField& field : fields) {
    const std::string value =
        NeedsQuotes(field.value)
            ? absl::StrCat("\"", absl::StrReplaceAll(field.value, {{"\"", "\\\""}, {"\\", "\\\\"}}),
                           "\"")
            : field.value;
    absl::StrAppend(&line, " ", field.key, "=", EscapeControls(value, Newlines::kEscaped));
  }
  return line;
}

Log::Log(LogStyle style, LogLevel level)
    : impl_(std::make_unique<Impl>(style, level,
                                   std::make_shared<spdlog::sinks::stderr_sink_mt>())) {}

Log::Log(LogStyle style, LogLevel level, std::function<void(const std::string&)> sink)
    : impl_(std::make_unique<Impl>(style, level, std::make_shared<FunctionSink>(std::move(sink)))) {
}

Log::~Log() = default;

void Log::Write(LogLevel level, absl::string_view message,
                std::initializer_list<LogField> fields) const {
  impl_->Write(level, message, fields);
}
void Log::Debug(absl::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kDebug, message, fields);
}
void Log::Info(absl::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kInfo, message, fields);
}
void Log::Warning(absl::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kWarning, message, fields);
}
void Log::Error(absl::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kError, message, fields);
}

void Log::SetLevel(LogLevel level) { impl_->SetLevel(level); }

}  // namespace longhaul::daemon
