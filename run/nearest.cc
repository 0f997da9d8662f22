#include "run/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace longhaul::run {
namespace {

// A longer word is no misspelling of anything; the distance would cost its square.
constexpr size_t kWordSizeMax = 256;

}  // namespace

size_t EditDistance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> two_back, one_back(to.size() + 1), row(to.size() + 1);
  std::iota(one_back.begin(), one_back.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replace = one_back[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({one_back[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], two_back[j - 2] + 1);
      }
    }
    two_back = one_back;
    one_back = row;
  }
  return one_back.back();
}

const std::string& Nearest(absl::string_view word, absl::Span<const std::string> known) {
  LH_CHECK(!known.empty());
  const absl::string_view start = word.substr(0, kWordSizeMax);
  return *std::min_element(known.begin(), known.end(),
                           [start](const std::string& a, const std::string& b) {
                             return EditDistance(start, a) < EditDistance(start, b);
                           });
}

bool IsNear(absl::string_view word, absl::string_view known) {
  return word.size() <= kWordSizeMax && EditDistance(word, known) <= (known.size() + 2) / 3;
}

}  // namespace longhaul::run
