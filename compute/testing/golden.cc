#include "compute/testing/golden.h"

#include <fstream>

#include "base/check.h"
#include "nlohmann/json.hpp"

namespace longhaul::compute {

double GoldenCase::number(const std::string& key) const {
  const auto found = sizes.find(key);
  LH_CHECK(found != sizes.end(), "golden case ", name, " has no size ", key);
  return found->second;
}

int64_t GoldenCase::size(const std::string& key) const { return static_cast<int64_t>(number(key)); }

const std::vector<double>& GoldenCase::tensor(const std::string& key) const {
  const auto found = tensors.find(key);
  LH_CHECK(found != tensors.end(), "golden case ", name, " has no tensor ", key);
  return found->second;
}

std::vector<double> GoldenCase::optional_tensor(const std::string& key) const {
  const auto found = tensors.find(key);
  return found == tensors.end() ? std::vector<double>() : found->second;
}

std::vector<GoldenCase> LoadGolden(const std::string& op) {
  const std::string path = "tests/golden/ops/" + op + ".json";
  std::ifstream file(path);
  LH_CHECK(file.is_open(), "cannot open ", path, "; run the tests in the repository's root");
  const nlohmann::json document = nlohmann::json::parse(file);
  std::vector<GoldenCase> cases;
  for (const nlohmann::json& entry : document.at("cases")) {
    cases.push_back({entry.at("name"), entry.at("sizes"), entry.at("tensors")});
  }
  LH_CHECK(!cases.empty(), path, " has no cases");
  return cases;
}

}  // namespace longhaul::compute
