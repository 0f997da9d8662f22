#include "worker/comm/send_queue.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_copy.h"
#include "base/status_macros.h"

namespace longhaul::worker {

SendQueue::SendQueue(const LinkContext& context, const LinkHealth& health)
    : window_(context.link.window),
      chunk_bytes_(context.exchange.chunk_bytes),
      clock_(context.clock),
      counters_(context.counters),
      health_(health),
      phases_(context.link.connections, Phase::kBroken),
      was_welcomed_(context.link.connections, false),
      oldest_when_dialled_(context.link.connections, 0) {}

absl::Status SendQueue::Reserve(FrameKind kind, absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto room = [&] {
    return taken_[kind] < window_ &&
           next_sequence_ + static_cast<uint64_t>(reserved_) < OldestLocked() + kSequencesAheadMax;
  };
  const bool ready =
      health_.WaitWhileAlive(lock, changed_, deadline, [&] { return !cancelled_.ok() || room(); });
  LH_RETURN_IF_ERROR(OwnCopy(cancelled_));
  if (!ready) return absl::DeadlineExceededError("the window is full");
  ++taken_[kind];
  ++reserved_;
  return absl::OkStatus();
}

void SendQueue::Push(const FrameKey& key, std::string bytes) {
  auto frame = std::make_shared<Frame>();
  frame->key = key;
  frame->bytes = std::move(bytes);
  const uint64_t chunks = (frame->bytes.size() - 1) / chunk_bytes_ + 1;
  frame->given_to.assign(chunks, kNeverGiven);
  std::lock_guard<std::mutex> lock(mutex_);
  --reserved_;
  const uint64_t sequence = next_sequence_++;
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) pending_.emplace(sequence, chunk);
  unconsumed_[sequence] = std::move(frame);
  ++counters_.frames_sent;
  changed_.notify_all();
}

std::string SendQueue::TakeBuffer() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (spare_.empty()) return std::string();
  std::string buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

absl::Status SendQueue::WaitEmpty(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool ready = health_.WaitWhileAlive(lock, changed_, deadline, [this] {
    return !cancelled_.ok() || (unconsumed_.empty() && reserved_ == 0);
  });
  LH_RETURN_IF_ERROR(OwnCopy(cancelled_));
  return ready ? absl::OkStatus() : absl::DeadlineExceededError("frames are not consumed");
}

std::string SendQueue::DescribeUnconsumed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (unconsumed_.empty()) return "";
  return absl::StrCat(unconsumed_.size(), unconsumed_.size() == 1 ? " frame" : " frames",
                      ", the first the ", FrameName(unconsumed_.begin()->second->key));
}

void SendQueue::Dialling(int connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  phases_[connection] = Phase::kDialling;
  oldest_when_dialled_[connection] = OldestLocked();
}

absl::Status SendQueue::Welcomed(int connection, const StreamWelcome& welcome) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (welcome.next_sequence > next_sequence_ || welcome.consumed_before > welcome.next_sequence) {
    return absl::FailedPreconditionError(
        absl::StrCat("it says that it has the first ", welcome.next_sequence,
                     " frames and consumed ", welcome.consumed_before, ", but ", next_sequence_,
                     " were sent: it has talked to another sender of this epoch; a new epoch is "
                     "needed"));
  }
  // Not what is consumed by now: another connection may have told of it after this welcome was
  // made.
  const uint64_t oldest = oldest_when_dialled_[connection];
  if (welcome.next_sequence < oldest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it says that it has only the first ", welcome.next_sequence, " frames, but ", oldest,
        " were consumed: it was restarted within this epoch; a new epoch is "
        "needed"));
  }
  while (!unconsumed_.empty() && unconsumed_.begin()->first < welcome.consumed_before) {
    ReleaseLocked(unconsumed_.begin()->first);
  }
  pending_.erase(pending_.begin(), pending_.lower_bound({welcome.next_sequence, 0}));
  if (was_welcomed_[connection]) ++counters_.reconnects;
  was_welcomed_[connection] = true;
  phases_[connection] = Phase::kWelcomed;
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status SendQueue::Consumed(uint64_t sequence) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (sequence >= next_sequence_) {
    return absl::FailedPreconditionError(absl::StrCat("it says that it consumed frame ", sequence,
                                                      ", but only ", next_sequence_, " were sent"));
  }
  ReleaseLocked(sequence);
  return absl::OkStatus();
}

uint64_t SendQueue::OldestLocked() const {
  return unconsumed_.empty() ? next_sequence_ : unconsumed_.begin()->first;
}

void SendQueue::ReleaseLocked(uint64_t sequence) {
  const auto found = unconsumed_.find(sequence);
  if (found == unconsumed_.end()) return;
  std::shared_ptr<Frame> frame = std::move(found->second);
  unconsumed_.erase(found);
  pending_.erase(pending_.lower_bound({sequence, 0}), pending_.lower_bound({sequence + 1, 0}));
  --taken_[frame->key.kind];
  if (frame->readers == 0 && spare_.size() < static_cast<size_t>(window_)) {
    spare_.push_back(std::move(frame->bytes));
  }
  changed_.notify_all();
}

void SendQueue::Broken(int connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  phases_[connection] = Phase::kBroken;
  for (const auto& [sequence, frame] : unconsumed_) {
    for (size_t chunk = 0; chunk < frame->given_to.size(); ++chunk) {
      if (frame->given_to[chunk] != connection) continue;
      frame->given_to[chunk] = kLost;
      frame->counted_as_resent = false;
      pending_.emplace(sequence, chunk);
    }
  }
  changed_.notify_all();
}

bool SendQueue::WaitWelcomed(int connection, absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  clock_.WaitUntil(lock, changed_, deadline,
                   [&] { return !cancelled_.ok() || phases_[connection] != Phase::kDialling; });
  return phases_[connection] == Phase::kWelcomed;
}

bool SendQueue::WaitBroken(int connection, absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  clock_.WaitUntil(lock, changed_, deadline,
                   [&] { return !cancelled_.ok() || phases_[connection] == Phase::kBroken; });
  return phases_[connection] == Phase::kBroken;
}

std::optional<StreamMessage> SendQueue::NextMessage(int connection, absl::Time sign_of_life_at) {
  FrameChunk chunk;
  std::shared_ptr<Frame> source;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool ready = clock_.WaitUntil(lock, changed_, sign_of_life_at, [&] {
      return !cancelled_.ok() || phases_[connection] != Phase::kWelcomed || !pending_.empty();
    });
    if (!ready) return SignOfLife{};
    if (!cancelled_.ok() || phases_[connection] != Phase::kWelcomed) return std::nullopt;
    const ChunkId id = *pending_.begin();
    pending_.erase(pending_.begin());
    const std::shared_ptr<Frame>& frame = unconsumed_.at(id.first);
    int& given_to = frame->given_to[id.second];
    if (given_to == kLost && !frame->counted_as_resent) {
      frame->counted_as_resent = true;
      ++counters_.frames_resent;
    }
    given_to = connection;
    ++frame->readers;
    chunk.sequence = id.first;
    chunk.offset = id.second * chunk_bytes_;
    source = frame;
  }
  chunk.frame_bytes = source->bytes.size();
  chunk.bytes = source->bytes.substr(chunk.offset, chunk_bytes_);
  std::lock_guard<std::mutex> lock(mutex_);
  --source->readers;
  return chunk;
}

void SendQueue::Cancel(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (cancelled_.ok()) cancelled_ = OwnCopy(reason);
  changed_.notify_all();
}

}  // namespace longhaul::worker
