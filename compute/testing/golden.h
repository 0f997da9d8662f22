// Golden vectors made by tools/make_golden.py.
#ifndef LONGHAUL_COMPUTE_TESTING_GOLDEN_H_
#define LONGHAUL_COMPUTE_TESTING_GOLDEN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace longhaul::compute {

struct GoldenCase {
  std::string name;
  std::map<std::string, double> sizes;
  std::map<std::string, std::vector<double>> tensors;

  // Die if there is none of that name.
  int64_t size(const std::string& key) const;
  double number(const std::string& key) const;
  const std::vector<double>& tensor(const std::string& key) const;
  // Empty if there is none.
  std::vector<double> optional_tensor(const std::string& key) const;
};

// The cases of tests/golden/ops/`op`.json, below the current directory; dies without them.
std::vector<GoldenCase> LoadGolden(const std::string& op);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_TESTING_GOLDEN_H_
