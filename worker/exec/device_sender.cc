#include "worker/exec/device_sender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "worker/comm/link_context.h"

namespace longhaul::worker {

using compute::DeviceSpan;
using compute::Mark;

absl::StatusOr<std::unique_ptr<DeviceSender>> DeviceSender::Make(compute::Backend& backend,
                                                                 Exchange& exchange,
                                                                 const DeviceLinks& links,
                                                                 Clock& clock) {
  LH_ASSIGN_OR_RETURN(auto copies, backend.MakeCopyStream());
  LH_ASSIGN_OR_RETURN(auto staging, links.AllocateStaging());
  return std::unique_ptr<DeviceSender>(
      new DeviceSender(backend, exchange, clock, std::move(copies), std::move(staging)));
}

DeviceSender::DeviceSender(compute::Backend& backend, Exchange& exchange, Clock& clock,
                           std::unique_ptr<compute::CopyStream> copies,
                           std::vector<StagingBuffer> staging)
    : backend_(backend),
      exchange_(exchange),
      clock_(clock),
      copies_(std::move(copies)),
      buffers_(staging.size()) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    static_cast<StagingBuffer&>(buffers_[i]) = std::move(staging[i]);
  }
  thread_ = std::thread([this] { Run(); });
}

DeviceSender::~DeviceSender() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (!jobs_.empty()) exchange_.Cancel(absl::CancelledError("the step was given up"));
    changed_.notify_all();
  }
  thread_.join();
}

absl::Status DeviceSender::Send(const DeviceLink& link, const FrameKey& key,
                                const DeviceSpan& values, absl::Time deadline) {
  LH_ASSIGN_OR_RETURN(OutBuffer* const buffer, TakeBuffer(link, key, deadline));
  Job job{&link, key, static_cast<uint64_t>(values.elements), 0, deadline, buffer};
  job.bytes =
      buffer->tied ? static_cast<size_t>(values.bytes()) : link.codec.EncodedSize(values.elements);
  absl::StatusOr<std::unique_ptr<Mark>> copied = Queue(job, values);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!copied.ok()) {
    buffer->busy = false;
    return copied.status();
  }
  buffer->copied = *std::move(copied);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<DeviceSender::OutBuffer*> DeviceSender::TakeBuffer(const DeviceLink& link,
                                                                  const FrameKey& key,
                                                                  absl::Time deadline) {
  const absl::Time start = clock_.Now();
  OutBuffer* free = nullptr;
  std::unique_lock<std::mutex> lock(mutex_);
  const bool ready = clock_.WaitUntil(lock, changed_, deadline, [&] {
    for (OutBuffer& buffer : buffers_) {
      if (!buffer.busy && buffer.tied == IsTied(key.kind)) free = &buffer;
    }
    return free != nullptr || !status_.ok();
  });
  LH_RETURN_IF_ERROR(OwnCopy(status_));
  if (!ready) {
    return absl::DeadlineExceededError(absl::StrCat(
        "waited ", Seconds(clock_.Now() - start), " for a buffer for the ", FrameName(key), " to ",
        PeerName(link.options), ": all are on their way from the device to the exchange"));
  }
  free->busy = true;
  return free;
}

absl::StatusOr<std::unique_ptr<Mark>> DeviceSender::Queue(const Job& job,
                                                          const DeviceSpan& values) {
  OutBuffer& buffer = *job.buffer;
  LH_CHECK(job.bytes <= buffer.pinned->bytes(), job.bytes, " bytes for a buffer of ",
           buffer.pinned->bytes());
  const void* from = values.data;
  if (buffer.tied) {
    LH_CHECK(values.element == compute::Element::kFloat32, "tied tensors are floats");
  } else {
    LH_RETURN_IF_ERROR(job.link->codec.Encode(values, buffer.device->data()));
    from = buffer.device->data();
  }
  LH_ASSIGN_OR_RETURN(const std::unique_ptr<Mark> encoded, backend_.MarkNow());
  LH_RETURN_IF_ERROR(copies_->After(*encoded));
  LH_RETURN_IF_ERROR(copies_->ToHost(buffer.pinned->data(), from, job.bytes));
  LH_ASSIGN_OR_RETURN(std::unique_ptr<Mark> copied, copies_->MarkNow());
  // Without a copy on the device, operators must not overwrite the values before they have crossed.
  if (buffer.tied) LH_RETURN_IF_ERROR(backend_.After(*copied));
  return copied;
}

void DeviceSender::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    clock_.WaitUntil(lock, changed_, absl::InfiniteFuture(),
                     [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    absl::Status status;
    // Later tensors are not waited for once one has failed: the device may hang.
    if (status_.ok() && !stopping_) {
      lock.unlock();
      status = compute::WaitFor(
          *job.buffer->copied, clock_, DeviceDeadline(clock_, job.deadline),
          absl::StrCat("the copy of the ", FrameName(job.key), " from the device"));
      lock.lock();
    }
    if (status.ok() && status_.ok() && !stopping_) {
      lock.unlock();
      status = HandOver(job);
      lock.lock();
    }
    if (status_.ok()) status_ = OwnCopy(status);
    job.buffer->copied = nullptr;
    job.buffer->busy = false;
    jobs_.pop_front();
    changed_.notify_all();
  }
}

absl::Status DeviceSender::HandOver(const Job& job) {
  const int peer = job.link->options.peer_group;
  const void* const pinned = job.buffer->pinned->data();
  if (job.buffer->tied || job.link->host_encodes) {
    return exchange_.Send(peer, job.key, {static_cast<const float*>(pinned), job.elements},
                          job.deadline);
  }
  const EncodedTensor tensor{
      job.link->options.codec, job.elements, {static_cast<const uint8_t*>(pinned), job.bytes}};
  return exchange_.SendEncoded(peer, job.key, tensor, job.deadline);
}

absl::Status DeviceSender::Finish(absl::Time deadline) {
  const absl::Time start = clock_.Now();
  std::unique_lock<std::mutex> lock(mutex_);
  const bool done =
      clock_.WaitUntil(lock, changed_, deadline, [this] { return jobs_.empty() || !status_.ok(); });
  LH_RETURN_IF_ERROR(OwnCopy(status_));
  if (done) return absl::OkStatus();
  const Job& first = jobs_.front();
  return absl::DeadlineExceededError(absl::StrCat(
      "waited ", Seconds(clock_.Now() - start), " until the exchange takes the ",
      FrameName(first.key), " to ", PeerName(first.link->options), " from the device"));
}

}  // namespace longhaul::worker
