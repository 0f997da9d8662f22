#include "model/family.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longhaul::model {
namespace {

struct Family {
  const char* name;
  absl::StatusOr<Graph> (*build)(const ModelSpec&);
};

// A new family is a builder function and one line here.
constexpr Family kFamilies[] = {
    {"gpt2", BuildGpt2},
};

}  // namespace

std::vector<std::string> FamilyNames() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.push_back(family.name);
  return names;
}

absl::StatusOr<Graph> BuildGraph(const ModelSpec& spec) {
  for (const Family& family : kFamilies) {
    if (spec.family == family.name) return family.build(spec);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model.family: '", spec.family,
                   "' is not known; use one of: ", absl::StrJoin(FamilyNames(), ", ")));
}

}  // namespace longhaul::model
