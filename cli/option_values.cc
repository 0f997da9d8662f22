#include "cli/option_values.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace longhaul::cli {
namespace {

class ValuesFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    const std::string type = option->get_type_name();
    const size_t colon = type.find(':');
    absl::string_view rest = text;
    if (colon == std::string::npos || !absl::ConsumePrefix(&rest, absl::StrCat(" ", type))) {
      return text;
    }
    return absl::StrCat(" ", type.substr(colon + 1), rest);
  }
};

// "bash", "text or json", "llmc, megatron or raw"
std::string Enumerated(const std::vector<std::string>& words) {
  if (words.size() == 1) return words[0];
  return absl::StrCat(absl::StrJoin(words.begin(), words.end() - 1, ", "), " or ", words.back());
}

}  // namespace

CLI::Validator WholeNumber() {
  const auto problem = [](const std::string& text) -> std::string {
    int64_t value = 0;
    if (absl::SimpleAtoi(text, &value) && value >= 0) return "";
    return absl::StrCat("must be a whole number from 0 to ", std::numeric_limits<int64_t>::max(),
                        ", not ", text);
  };
  return CLI::Validator(problem, "NUMBER");
}

CLI::Validator Within(int64_t min, int64_t max) {
  return CLI::Range(min, max).description(absl::StrCat(min, " to ", max));
}

CLI::Validator OneOf(std::vector<std::string> words) {
  const std::string description = absl::StrCat("{", absl::StrJoin(words, ","), "}");
  const auto problem = [words = std::move(words)](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    return absl::StrCat("must be ", Enumerated(words), ", not ", text);
  };
  return CLI::Validator(problem, description);
}

std::shared_ptr<CLI::Formatter> HelpFormatter() { return std::make_shared<ValuesFormatter>(); }

}  // namespace longhaul::cli
