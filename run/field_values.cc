#include "run/field_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/utf8.h"

namespace longhaul::run {
namespace {

// A value for a message: one line, no control characters, not long.
std::string Shown(absl::string_view text) {
  constexpr size_t kShownMax = 40;
  std::string shown(text.substr(0, kShownMax));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return absl::StrCat("'", shown, text.size() > kShownMax ? "..." : "", "'");
}

std::string Got(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a section";
    case YamlNode::Kind::kScalar:
      break;
  }
  return node.quoted ? absl::StrCat("the text ", Shown(node.text)) : Shown(node.text);
}

std::string Expected(absl::string_view what, const YamlNode& node) {
  return absl::StrCat("expected ", what, ", got ", Got(node));
}

bool IsPlain(const YamlNode& node) { return node.kind == YamlNode::Kind::kScalar && !node.quoted; }

// The whole text as a number; std::from_chars depends on no locale and accepts no blanks.
template <typename T>
std::errc ParseNumber(absl::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return error;
  return rest == end ? std::errc() : std::errc::invalid_argument;
}

template <typename T>
std::string ReadWhole(const YamlNode& node, absl::string_view what, T& value) {
  T parsed = 0;
  const std::errc error =
      IsPlain(node) ? ParseNumber(node.text, parsed) : std::errc::invalid_argument;
  if (error == std::errc::result_out_of_range) {
    return absl::StrCat(Shown(node.text), " does not fit into 64 bits");
  }
  if (error != std::errc()) return Expected(what, node);
  value = parsed;
  return "";
}

std::string OneOf(const std::vector<std::string>& words) {
  return absl::StrCat("one of ", absl::StrJoin(words, ", "));
}

std::string Range(const Whole& whole) {
  const std::string numbers = absl::StrCat("a whole number from ", whole.min, " to ", whole.max);
  return whole.zero_word.empty() ? numbers : absl::StrCat(whole.zero_word, " or ", numbers);
}

std::string Range(const Real& real) {
  std::vector<std::string> bounds;
  if (std::isfinite(real.min)) {
    bounds.push_back(absl::StrCat(real.min_excluded ? "above " : "at least ", real.min));
  }
  if (std::isfinite(real.max)) {
    bounds.push_back(absl::StrCat(real.max_excluded ? "below " : "at most ", real.max));
  }
  return bounds.empty() ? "a finite number" : absl::StrJoin(bounds, " and ");
}

std::string CheckText(absl::string_view text) {
  if (!IsUtf8(text)) return "must be UTF-8 text";
  const bool control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  return control ? "must not contain control characters" : "";
}

std::string Check(const Whole& whole) {
  if (!whole.zero_word.empty() && *whole.value == 0) return "";
  if (*whole.value >= whole.min && *whole.value <= whole.max) return "";
  return absl::StrCat("must be ", Range(whole), ", got ", *whole.value);
}
// What one of the numbers must be.
Whole OneOf(const Wholes& wholes, int64_t* value) {
  const bool alone = wholes.value->size() == 1;
  return {value, wholes.min, wholes.max, alone ? wholes.zero_word : ""};
}

std::string Check(const Wholes& wholes) {
  if (wholes.value->empty() || wholes.value->size() > wholes.count_max) {
    return absl::StrCat("must be a number or a list of at most ", wholes.count_max, ", got ",
                        wholes.value->size());
  }
  for (int64_t& value : *wholes.value) {
    if (std::string problem = Check(OneOf(wholes, &value)); !problem.empty()) return problem;
  }
  return "";
}
std::string Check(const Unsigned&) { return ""; }
std::string Check(const Real& real) {
  const double value = *real.value;
  if (!std::isfinite(value)) return "must be a finite number";
  const bool above = real.min_excluded ? value > real.min : value >= real.min;
  const bool below = real.max_excluded ? value < real.max : value <= real.max;
  return above && below ? "" : absl::StrCat("must be ", Range(real), ", got ", value);
}
std::string Check(const Reals& reals) {
  for (const Real& real : reals.values) {
    if (std::string problem = Check(real); !problem.empty()) return problem;
  }
  return "";
}
std::string Check(const Flag&) { return ""; }
std::string Check(const Text& text) {
  const std::string& value = *text.value;
  if (!text.choices.empty() &&
      std::find(text.choices.begin(), text.choices.end(), value) == text.choices.end()) {
    return absl::StrCat("must be ", OneOf(text.choices), ", got ", Shown(value));
  }
  if (value.empty()) return text.empty_allowed ? "" : "must not be empty";
  return CheckText(value);
}
std::string Check(const Texts& texts) {
  if (texts.value->size() > texts.count_max) {
    return absl::StrCat("must be a list of at most ", texts.count_max, ", got ",
                        texts.value->size());
  }
  for (const std::string& value : *texts.value) {
    if (value.empty()) return "must not contain an empty text";
    if (std::string problem = CheckText(value); !problem.empty()) return problem;
  }
  return "";
}
std::string Check(const Choice& choice) {
  if (choice.get() < choice.words.size()) return "";
  return absl::StrCat("must be ", OneOf(choice.words));
}
std::string Check(const Parsed&) { return ""; }
std::string Check(const Maps&) { return ""; }

std::string Read(const YamlNode& node, const Whole& whole) {
  if (!whole.zero_word.empty() && node.kind == YamlNode::Kind::kScalar &&
      node.text == whole.zero_word) {
    *whole.value = 0;
    return "";
  }
  const std::string what = whole.zero_word.empty()
                               ? "a whole number"
                               : absl::StrCat(whole.zero_word, " or a whole number");
  if (std::string problem = ReadWhole(node, what, *whole.value); !problem.empty()) return problem;
  if (!whole.zero_word.empty() && *whole.value == 0) {
    return absl::StrCat("must be ", Range(whole), ", got 0");
  }
  return Check(whole);
}
std::string Read(const YamlNode& node, const Wholes& wholes) {
  const bool list = node.kind == YamlNode::Kind::kSequence;
  const size_t count = list ? node.items.size() : 1;
  if (count == 0 || count > wholes.count_max) {
    return absl::StrCat("expected a number or a list of at most ", wholes.count_max, ", got ",
                        count);
  }
  std::vector<int64_t> values(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const Whole whole{&values[i], wholes.min, wholes.max, list ? "" : wholes.zero_word};
    std::string problem = Read(list ? node.items[i] : node, whole);
    if (!problem.empty()) return problem;
  }
  *wholes.value = std::move(values);
  return "";
}
std::string Read(const YamlNode& node, const Unsigned& number) {
  return ReadWhole(node, "a whole number from 0", *number.value);
}
std::string Read(const YamlNode& node, const Real& real) {
  double parsed = 0;
  const std::errc error =
      IsPlain(node) ? ParseNumber(node.text, parsed) : std::errc::invalid_argument;
  if (error == std::errc::result_out_of_range) {
    return absl::StrCat(Shown(node.text), " is too large or too small");
  }
  if (error != std::errc()) return Expected("a number", node);
  *real.value = parsed;
  return Check(real);
}
std::string Read(const YamlNode& node, const Reals& reals) {
  const size_t count = reals.values.size();
  const std::string what = absl::StrCat("a list of ", count, " numbers");
  if (node.kind != YamlNode::Kind::kSequence) return Expected(what, node);
  if (node.items.size() != count) {
    return absl::StrCat("expected ", what, ", got ", node.items.size());
  }
  for (size_t i = 0; i < count; ++i) {
    if (std::string problem = Read(node.items[i], reals.values[i]); !problem.empty()) {
      return problem;
    }
  }
  return "";
}
std::string Read(const YamlNode& node, const Flag& flag) {
  if (!IsPlain(node) || (node.text != "true" && node.text != "false")) {
    return Expected("true or false", node);
  }
  *flag.value = node.text == "true";
  return "";
}
std::string Read(const YamlNode& node, const Text& text) {
  if (node.kind != YamlNode::Kind::kScalar) return Expected("text", node);
  *text.value = node.text;
  return Check(text);
}
std::string Read(const YamlNode& node, const Texts& texts) {
  if (node.kind != YamlNode::Kind::kSequence) return Expected("a list of texts", node);
  texts.value->clear();
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::kScalar) return Expected("text", item);
    texts.value->push_back(item.text);
  }
  return Check(texts);
}
std::string Read(const YamlNode& node, const Choice& choice) {
  const auto found = std::find(choice.words.begin(), choice.words.end(), node.text);
  if (node.kind != YamlNode::Kind::kScalar || found == choice.words.end()) {
    return Expected(OneOf(choice.words), node);
  }
  choice.set(static_cast<size_t>(found - choice.words.begin()));
  return "";
}
std::string Read(const YamlNode& node, const Parsed& parsed) {
  if (node.kind != YamlNode::Kind::kScalar) return Expected("a value", node);
  return std::string(parsed.parse(node.text).message());
}
std::string Read(const YamlNode&, const Maps&) {
  LH_CHECK(false, "lists of maps are read by ReadFields");
  return "";
}

}  // namespace

std::string ReadValue(const YamlNode& node, const Target& target) {
  return std::visit([&node](const auto& typed) { return Read(node, typed); }, target);
}

std::string CheckValue(const Target& target) {
  return std::visit([](const auto& typed) { return Check(typed); }, target);
}

}  // namespace longhaul::run
