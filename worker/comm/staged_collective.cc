#include "worker/comm/staged_collective.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace longhaul::worker {
namespace {

using compute::Buffer;
using compute::CopyStream;
using compute::Mark;

// Pinned memory of one piece.
struct Stage {
  std::unique_ptr<Buffer> memory;
  std::unique_ptr<Mark> copied;  // the last copy from or to it; null: there was none
  float* values() const { return static_cast<float*>(memory->data()); }
};

class StagedCollective final : public Collective {
 public:
  StagedCollective(Collective& host, std::array<Stage, 2> stages,
                   std::unique_ptr<CopyStream> stream, Clock& clock, size_t piece_max)
      : host_(host),
        stages_(std::move(stages)),
        stream_(std::move(stream)),
        clock_(clock),
        piece_max_(piece_max) {}

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  bool on_device() const override { return true; }

  absl::Status AllReduceSum(absl::Span<float> values, absl::Time deadline) override {
    return OverHost(values, {.down = true, .up = true}, deadline,
                    [&](absl::Span<float> piece) { return host_.AllReduceSum(piece, deadline); });
  }
  absl::Status Broadcast(absl::Span<float> values, absl::Time deadline) override {
    return OverHost(values, {.down = rank() == 0, .up = rank() != 0}, deadline,
                    [&](absl::Span<float> piece) { return host_.Broadcast(piece, deadline); });
  }
  absl::Status SumDoubles(absl::Span<double> values, absl::Time deadline) override {
    return host_.SumDoubles(values, deadline);
  }
  absl::Status BroadcastDoubles(absl::Span<double> values, absl::Time deadline) override {
    return host_.BroadcastDoubles(values, deadline);
  }
  void Cancel(const absl::Status& reason) override { host_.Cancel(reason); }

 private:
  struct Ways {
    bool down, up;  // from the device to the host, and back
  };

  absl::Status OverHost(absl::Span<float> values, Ways ways, absl::Time deadline,
                        absl::FunctionRef<absl::Status(absl::Span<float>)> operation) {
    absl::Status status = InPieces(values, ways, deadline, operation);
    // After an error too: nothing may touch the caller's memory any more.
    for (Stage& stage : stages_) status.Update(AwaitCopy(stage, deadline));
    return status;
  }

  absl::Status InPieces(absl::Span<float> values, Ways ways, absl::Time deadline,
                        absl::FunctionRef<absl::Status(absl::Span<float>)> operation) {
    if (ways.down) LH_RETURN_IF_ERROR(Down(values, 0));
    for (size_t index = 0; index * piece_max_ < values.size(); ++index) {
      // It may take its stage at once: the stream copies what the stage held away before.
      if (ways.down) LH_RETURN_IF_ERROR(Down(values, index + 1));
      Stage& stage = StageOf(index);
      LH_RETURN_IF_ERROR(AwaitCopy(stage, deadline));
      const absl::Span<float> piece = Piece(values, index);
      LH_RETURN_IF_ERROR(operation({stage.values(), piece.size()}));
      if (!ways.up) continue;
      LH_RETURN_IF_ERROR(
          stream_->ToDevice(piece.data(), stage.values(), piece.size() * sizeof(float)));
      LH_ASSIGN_OR_RETURN(stage.copied, stream_->MarkNow());
    }
    return absl::OkStatus();
  }

  absl::Status Down(absl::Span<float> values, size_t index) {
    if (index * piece_max_ >= values.size()) return absl::OkStatus();
    const absl::Span<float> piece = Piece(values, index);
    Stage& stage = StageOf(index);
    LH_RETURN_IF_ERROR(stream_->ToHost(stage.values(), piece.data(), piece.size() * sizeof(float)));
    LH_ASSIGN_OR_RETURN(stage.copied, stream_->MarkNow());
    return absl::OkStatus();
  }

  absl::Status AwaitCopy(Stage& stage, absl::Time deadline) {
    if (stage.copied == nullptr) return absl::OkStatus();
    // The peers have no part in it, so a card that takes longer hangs.
    const absl::Time end = std::min(deadline, clock_.Now() + compute::kDeviceWaitMax);
    LH_RETURN_IF_ERROR(compute::WaitFor(*stage.copied, clock_, end,
                                        "copies between device and host for the replicas' sums"));
    stage.copied = nullptr;
    return absl::OkStatus();
  }

  Stage& StageOf(size_t index) { return stages_[index % stages_.size()]; }
  absl::Span<float> Piece(absl::Span<float> values, size_t index) const {
    return values.subspan(index * piece_max_, piece_max_);
  }

  Collective& host_;
  std::array<Stage, 2> stages_;
  const std::unique_ptr<CopyStream> stream_;
  Clock& clock_;
  const size_t piece_max_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> MakeStagedCollective(Collective& host,
                                                                 compute::Backend& backend,
                                                                 Clock& clock, size_t piece_max) {
  LH_CHECK(piece_max > 0 && piece_max <= kCollectivePieceMax, "pieces of ", piece_max);
  std::array<Stage, 2> stages;
  for (Stage& stage : stages) {
    LH_ASSIGN_OR_RETURN(stage.memory, backend.AllocatePinned(piece_max * sizeof(float)));
  }
  LH_ASSIGN_OR_RETURN(std::unique_ptr<CopyStream> stream, backend.MakeCopyStream());
  return std::make_unique<StagedCollective>(host, std::move(stages), std::move(stream), clock,
                                            piece_max);
}

}  // namespace longhaul::worker
