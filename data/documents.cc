#include "data/documents.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace longhaul::data {

Documents::Documents(run::DocumentMode mode, std::vector<int64_t> starts)
    : mode_(mode), starts_(std::move(starts)) {
  LH_CHECK(mode_ == run::DocumentMode::kPacked || (!starts_.empty() && starts_[0] == 0),
           starts_.size(), " documents");
}

absl::Span<const int64_t> Documents::StartsIn(int64_t begin, int64_t end) const {
  if (mode_ == run::DocumentMode::kPacked) return {};
  const auto first = std::lower_bound(starts_.begin(), starts_.end(), begin);
  const auto last = std::lower_bound(first, starts_.end(), end);
  return absl::MakeConstSpan(starts_).subspan(first - starts_.begin(), last - first);
}

int64_t Documents::StartOf(int64_t position) const {
  LH_CHECK(!starts_.empty() && position >= 0, "position ", position);
  return *std::prev(std::upper_bound(starts_.begin(), starts_.end(), position));
}

int64_t Documents::EndOf(int64_t position, int64_t end_max) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), position);
  return next == starts_.end() ? end_max : std::min(*next, end_max);
}

std::vector<int64_t> FindDocumentStarts(const TokenSource& source, int32_t end_of_document) {
  constexpr int64_t kTokensAtOnce = 1 << 16;
  std::vector<int64_t> starts = {0};
  std::vector<int32_t> tokens;
  for (int64_t begin = 0; begin < source.size(); begin += kTokensAtOnce) {
    tokens.resize(std::min(kTokensAtOnce, source.size() - begin));
    source.Read(begin, absl::MakeSpan(tokens));
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int64_t next = begin + static_cast<int64_t>(i) + 1;
      if (tokens[i] == end_of_document && next < source.size()) starts.push_back(next);
    }
  }
  return starts;
}

}  // namespace longhaul::data
