#include "worker/exec/testing/cluster_data.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace longhaul::worker {
namespace {

constexpr int64_t kTokens = 640;
constexpr int32_t kEndOfDocument = 7;

class MemoryTokens : public data::TokenSource {
 public:
  MemoryTokens(int64_t vocab, int32_t token_outside) {
    int64_t token = 0;
    for (int64_t i = 0; i < kTokens; ++i) {
      const uint64_t bits = RandomBits(7, RandomStream::kBatch, 0, 0, i)[0];
      token = (token + (bits % 4 == 0 ? bits / 4 : 1)) % vocab;
      const bool outside = token_outside >= 0 && i % 4 == 0;
      tokens_.push_back(outside ? token_outside : static_cast<int32_t>(token));
    }
  }
  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  void Read(int64_t begin, absl::Span<int32_t> out) const override {
    std::copy_n(tokens_.begin() + begin, out.size(), out.begin());
  }
  int32_t MaxToken() const override { return *std::max_element(tokens_.begin(), tokens_.end()); }

 private:
  std::vector<int32_t> tokens_;
};

data::Documents MakeDocuments(const ClusterDataOptions& options, const data::TokenSource& tokens) {
  if (options.documents == run::DocumentMode::kPacked) return data::Documents();
  if (!options.every_token_ends_a_document) {
    return data::Documents(options.documents, data::FindDocumentStarts(tokens, kEndOfDocument));
  }
  std::vector<int64_t> starts(tokens.size());
  std::iota(starts.begin(), starts.end(), 0);
  return data::Documents(options.documents, std::move(starts));
}

}  // namespace

ClusterData::ClusterData(const run::RunSpec& spec, const ClusterDataOptions& options)
    : tokens_(std::make_unique<MemoryTokens>(spec.model.vocab, options.token_outside)),
      documents_(MakeDocuments(options, *tokens_)) {
  const auto split = data::SplitTokens(kTokens, spec.data.validation_fraction, spec.model.context);
  LH_CHECK(split.ok(), split.status().ToString());
  batches_ = std::make_unique<data::Batches>(
      *tokens_, documents_, *split,
      data::BatchOptions{spec.train.seed, spec.train.micro_batch, spec.model.context});
}

}  // namespace longhaul::worker
