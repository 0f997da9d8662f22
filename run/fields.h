// Configuration files by table: one Field for each key says its name, its type, its range and where
// the value goes; reading, checking, messages with lines and spelling help follow from the table.
//
//   struct Listen { std::string address = "127.0.0.1:7070"; int64_t streams = 4; };
//   std::vector<Field> Fields(Listen& listen) {
//     return {{"listen.address", Text{&listen.address}},
//             {"listen.streams", Whole{&listen.streams, 1, 64}},
//             {"site", Text{&listen.site}, Presence::kRequired}};
//   }
//   absl::StatusOr<KeyLines> lines = ReadYaml(text, "coordinator.yaml", Fields(listen));
//
// A dot in a key is a section: the file above holds `listen: {address: ..., streams: ...}`. What
// the file does not mention keeps the value it had.
#ifndef LONGHAUL_RUN_FIELDS_H_
#define LONGHAUL_RUN_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "run/yaml_node.h"

namespace longhaul::run {

struct Field;

// Types of values. Every pointer belongs to the caller and must outlive the table.

// A whole number in [min, max]. With a `zero_word`, that word is read as 0, and 0 itself is
// refused.
struct Whole {
  int64_t* value;
  int64_t min, max;
  std::string zero_word = "";
};
// One whole number, or a list of at most `count_max`, each as in Whole.
struct Wholes {
  std::vector<int64_t>* value;
  int64_t min, max;
  size_t count_max;
  std::string zero_word = "";  // in place of the one number
};
// Any whole number in [0, 2^64).
struct Unsigned {
  uint64_t* value;
};
// A finite number between min and max, which themselves are allowed unless excluded.
struct Real {
  double* value;
  double min, max;
  bool min_excluded = false;
  bool max_excluded = false;
};
// A list of exactly these numbers.
struct Reals {
  std::vector<Real> values;
};
// true or false.
struct Flag {
  bool* value;
};
// UTF-8 without control characters, not empty unless allowed; one of `choices` if there are any.
struct Text {
  std::string* value;
  std::vector<std::string> choices = {};
  bool empty_allowed = false;
};
// A list of texts.
struct Texts {
  std::vector<std::string>* value;
  size_t count_max;
};
// One of `words`, by position. Made by Enum().
struct Choice {
  std::vector<std::string> words;
  std::function<size_t()> get;
  std::function<void(size_t)> set;
};
// Any scalar that the caller reads himself (addresses, durations, sizes). The error says what is
// wrong with the value; file, line and key are put in front of it.
struct Parsed {
  std::function<absl::Status(absl::string_view text)> parse;
};
// A list of maps. `add` appends an element to the caller's list and returns its table, which must
// stay valid until the next call.
struct Maps {
  size_t count_max;
  std::function<std::vector<Field>()> add;
};

using Target =
    std::variant<Whole, Wholes, Unsigned, Real, Reals, Flag, Text, Texts, Choice, Parsed, Maps>;

enum class Presence { kOptional, kRequired };

struct Field {
  std::string key;  // "train.optimizer.betas"
  Target target;
  Presence presence = Presence::kOptional;
};

// An enumeration whose values are 0, 1, ... in the order of `words`.
template <typename E>
Choice Enum(E* value, std::vector<std::string> words) {
  return {std::move(words), [value] { return static_cast<size_t>(*value); },
          [value](size_t position) { *value = static_cast<E>(position); }};
}

// Where the keys stood in a file, for errors found later than reading.
class KeyLines {
 public:
  explicit KeyLines(absl::string_view file_name) : file_name_(file_name) {}
  void Set(const std::string& key, int line) { lines_[key] = line; }
  // "FILE:LINE" of the key, else of the nearest section around it, else "FILE".
  std::string Where(absl::string_view key) const;

 private:
  std::string file_name_;
  std::map<std::string, int, std::less<>> lines_;
};

// Reads the tree into the table's targets. InvalidArgument begins with file and line and names the
// key: "first.yaml:7: unknown key 'train.micro_bach'; did you mean 'micro_batch'?". The targets are
// then partly written; use none of them.
absl::StatusOr<KeyLines> ReadFields(const YamlNode& root, absl::string_view file_name,
                                    absl::Span<const Field> fields);

// ParseYaml, then ReadFields.
absl::StatusOr<KeyLines> ReadYaml(absl::string_view text, absl::string_view file_name,
                                  absl::Span<const Field> fields);

// A value that does not fit its field.
struct Problem {
  std::string key;
  std::string message;  // "must be ..., got ..."
};

// Checks the values that the targets hold now against their types' ranges and choices, as reading
// does; Parsed and Maps hold nothing to check. The first problem, if any.
std::optional<Problem> CheckFields(absl::Span<const Field> fields);

}  // namespace longhaul::run

#endif  // LONGHAUL_RUN_FIELDS_H_
