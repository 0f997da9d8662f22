// JSON from outside: parsing with limits, and members with types, as Status instead of exceptions.
#ifndef LONGHAUL_BASE_JSON_H_
#define LONGHAUL_BASE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace longhaul {

using Json = nlohmann::json;

// Deepest nesting that ParseJson accepts.
inline constexpr size_t kJsonDepthMax = 32;

// One JSON value (RFC 8259) and nothing behind it. InvalidArgument for bad syntax, text that is not
// UTF-8, numbers beyond double, more than `bytes_max` bytes, nesting deeper than kJsonDepthMax, and
// an object that gives one key twice.
absl::StatusOr<Json> ParseJson(absl::string_view text, size_t bytes_max);

// Members of an object. InvalidArgument names the key: missing, another type, or out of range; also
// when `object` is none. References live as long as `object`.
absl::StatusOr<std::string> JsonText(const Json& object, absl::string_view key);
absl::StatusOr<bool> JsonFlag(const Json& object, absl::string_view key);
// Integers only: 3.0 is refused.
absl::StatusOr<int64_t> JsonWhole(const Json& object, absl::string_view key, int64_t min,
                                  int64_t max);
absl::StatusOr<double> JsonReal(const Json& object, absl::string_view key);
absl::StatusOr<const Json*> JsonArray(const Json& object, absl::string_view key);
absl::StatusOr<const Json*> JsonObject(const Json& object, absl::string_view key);

// Refuses an object with a key that is not known, naming it and those that are.
absl::Status JsonOnlyKeys(const Json& object, const std::set<std::string>& known);

// The member "schema" is the number `schema`; else the message names both.
absl::Status JsonSchema(const Json& object, int64_t schema);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_JSON_H_
