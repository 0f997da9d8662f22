#include "worker/comm/exchange.h"

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "compression/codec.h"
#include "compression/frame.h"
#include "worker/comm/counters.h"
#include "worker/comm/link_context.h"
#include "worker/comm/link_receiver.h"
#include "worker/comm/link_rules.h"
#include "worker/comm/link_sender.h"

namespace longhaul::worker {
namespace {

using compression::Codec;
using compression::ElementType;
using compression::FrameHeader;

// Both directions to one peer. Members are destroyed in reverse: the sender's threads end first.
struct Link {
  Link(const ExchangeOptions& exchange, const LinkOptions& link, Clock& clock, Counters& counters)
      : context{exchange, link, compression::RunHash(exchange.run), clock, counters} {}
  const LinkContext context;
  std::unique_ptr<LinkReceiver> receiver;
  std::unique_ptr<LinkSender> sender;
};

class ExchangeImpl final : public Exchange {
 public:
  ExchangeImpl(const ExchangeOptions& options, Clock& clock) : options_(options), clock_(clock) {}

  ~ExchangeImpl() override {
    Cancel(absl::CancelledError("the exchange has ended"));
    std::unique_lock<std::mutex> lock(mutex_);
    // Cancel has ended the streams; their threads are on the way out.
    clock_.WaitUntil(lock, changed_, absl::InfiniteFuture(), [this] { return serving_.empty(); });
  }

  absl::Status Start(Transport& transport) {
    for (const LinkOptions& link : options_.links) {
      LH_ASSIGN_OR_RETURN(LinkRules out, LinkRules::Make(link, options_.stage, link.peer_stage));
      LH_ASSIGN_OR_RETURN(LinkRules in, LinkRules::Make(link, link.peer_stage, options_.stage));
      auto made = std::make_unique<Link>(options_, link, clock_, counters_);
      made->receiver = std::make_unique<LinkReceiver>(made->context, std::move(in));
      made->sender = std::make_unique<LinkSender>(made->context, std::move(out), transport);
      links_[link.peer_group] = std::move(made);
    }
    return absl::OkStatus();
  }

  absl::Status Serve(const StreamHello& hello, ServerStream& stream) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      LH_RETURN_IF_ERROR(OwnCopy(cancelled_));
      serving_.insert(&stream);
    }
    const absl::Status status = ServeLink(hello, stream);
    std::lock_guard<std::mutex> lock(mutex_);
    serving_.erase(&stream);
    changed_.notify_all();
    return status;
  }

  absl::Status Send(int peer_group, const FrameKey& key, absl::Span<const float> values,
                    absl::Time deadline) override {
    LH_ASSIGN_OR_RETURN(Link* const link, FindLink(peer_group));
    return link->sender->Send(key, values, deadline);
  }

  absl::Status SendEncoded(int peer_group, const FrameKey& key, const EncodedTensor& tensor,
                           absl::Time deadline) override {
    LH_ASSIGN_OR_RETURN(Link* const link, FindLink(peer_group));
    return link->sender->SendEncoded(key, tensor, deadline);
  }

  absl::Status SendDoubles(int peer_group, const FrameKey& key, absl::Span<const double> values,
                           absl::Time deadline) override {
    LH_ASSIGN_OR_RETURN(Link* const link, FindLink(peer_group));
    return link->sender->SendDoubles(key, values, deadline);
  }

  absl::Status Receive(int peer_group, const FrameKey& key, absl::Span<float> values,
                       absl::Time deadline) override {
    const auto decode = [&](const Codec& codec, absl::Span<const uint8_t> bytes) {
      return codec.Decode(bytes, values);
    };
    return Take(peer_group, key, values.size(), decode, deadline);
  }

  absl::Status ReceiveEncoded(int peer_group, const FrameKey& key, uint64_t elements,
                              absl::FunctionRef<absl::Status(absl::Span<const uint8_t> bytes)> take,
                              absl::Time deadline) override {
    const auto check_and_take = [&](const Codec& codec, absl::Span<const uint8_t> bytes) {
      if (bytes.size() <= codec.EncodedSizeMax(elements)) return take(bytes);
      return absl::DataLossError(absl::StrCat("codec ", codec.name(), ": ", bytes.size(),
                                              " bytes for ", elements, " values, which take ",
                                              codec.EncodedSizeMax(elements), " at most"));
    };
    return Take(peer_group, key, elements, check_and_take, deadline);
  }

  absl::StatusOr<std::vector<double>> ReceiveDoubles(int peer_group, const FrameKey& key,
                                                     absl::Time deadline) override {
    LH_ASSIGN_OR_RETURN(Link* const link, FindLink(peer_group));
    LH_ASSIGN_OR_RETURN(const auto frame, WaitFor(*link, key, ElementType::kFloat64, deadline));
    std::vector<double> values(frame->header.elements);
    const absl::string_view payload = frame->payload();
    if (!payload.empty()) std::memcpy(values.data(), payload.data(), payload.size());
    link->receiver->Consumed(*frame);
    return values;
  }

  absl::Status Flush(absl::Time deadline) override {
    for (const auto& [peer, link] : links_) LH_RETURN_IF_ERROR(link->sender->Flush(deadline));
    return absl::OkStatus();
  }

  absl::Status WaitForSilence(int peer_group) override {
    LH_ASSIGN_OR_RETURN(Link* const link, FindLink(peer_group));
    LH_RETURN_IF_ERROR(link->receiver->WaitForSilence());
    return absl::DeadlineExceededError(
        absl::StrCat(SelfName(options_), " has not heard of ", PeerName(link->context.link),
                     " for ", Seconds(options_.silence_max), "; link from it ",
                     link->receiver->Describe(), "; link to it ", link->sender->Describe()));
  }

  void Cancel(const absl::Status& reason) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (cancelled_.ok()) cancelled_ = OwnCopy(reason);
      for (ServerStream* const stream : serving_) stream->Cancel();
    }
    for (const auto& [peer, link] : links_) {
      link->sender->Cancel(reason);
      link->receiver->Cancel(reason);
    }
  }

  ExchangeCounters counters() const override { return counters_.Snapshot(); }

 private:
  absl::StatusOr<Link*> FindLink(int peer_group) const {
    const auto link = links_.find(peer_group);
    if (link != links_.end()) return link->second.get();
    return absl::InvalidArgumentError(
        absl::StrCat(SelfName(options_), " has no link with device group ", peer_group));
  }

  // Waits for a tensor of `elements` values and consumes it once `take` returns OK.
  absl::Status Take(
      int peer_group, const FrameKey& key, uint64_t elements,
      absl::FunctionRef<absl::Status(const Codec& codec, absl::Span<const uint8_t> bytes)> take,
      absl::Time deadline) {
    LH_ASSIGN_OR_RETURN(Link* const link, FindLink(peer_group));
    LH_ASSIGN_OR_RETURN(const auto frame, WaitFor(*link, key, ElementType::kFloat32, deadline));
    if (frame->header.elements != elements) {
      return absl::InvalidArgumentError(
          absl::StrCat(FrameName(key), " from ", PeerName(link->context.link), " has ",
                       frame->header.elements, " elements, expected ", elements));
    }
    LH_ASSIGN_OR_RETURN(const Codec* const codec, compression::FindCodec(frame->header.codec));
    const absl::string_view payload = frame->payload();
    const absl::Status status =
        take(*codec, {reinterpret_cast<const uint8_t*>(payload.data()), payload.size()});
    if (!status.ok()) {
      return Annotate(status, absl::StrCat(FrameName(key), " from ", PeerName(link->context.link)));
    }
    link->receiver->Consumed(*frame);
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const ReceivedFrame>> WaitFor(Link& link, const FrameKey& key,
                                                               ElementType element,
                                                               absl::Time deadline) {
    const KindRule* const rule = link.receiver->rules().Find(key.kind);
    if (rule == nullptr || rule->element != element) {
      return absl::InvalidArgumentError(absl::StrCat(SelfName(options_), " cannot receive ",
                                                     ToString(key), " in this form from ",
                                                     PeerName(link.context.link)));
    }
    const absl::Time start = clock_.Now();
    auto frame = link.receiver->Wait(key, deadline);
    if (!absl::IsDeadlineExceeded(frame.status())) return frame;
    return absl::DeadlineExceededError(absl::StrCat(
        SelfName(options_), " waited ", Seconds(clock_.Now() - start), " for ", FrameName(key),
        " from ", PeerName(link.context.link), ": ", frame.status().message(), "; link from it ",
        link.receiver->Describe(), "; link to it ", link.sender->Describe()));
  }

  absl::Status ServeLink(const StreamHello& hello, ServerStream& stream) {
    const auto link = links_.find(hello.from_group);
    if (hello.to_group != options_.group || link == links_.end() || hello.connection < 0 ||
        hello.connection >= link->second->context.link.connections) {
      return absl::InvalidArgumentError(absl::StrCat(
          "connection ", hello.connection, " from device group ", hello.from_group,
          " to device group ", hello.to_group, " is not in the plan of ", SelfName(options_)));
    }
    return link->second->receiver->Serve(hello, stream);
  }

  const ExchangeOptions options_;
  Clock& clock_;
  Counters counters_;
  std::map<int, std::unique_ptr<Link>> links_;  // by peer group; constant after Start

  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status cancelled_;           // guarded by mutex_
  std::set<ServerStream*> serving_;  // guarded by mutex_
};

absl::Status Validate(const ExchangeOptions& options) {
  constexpr int kWindowMax = 4096;
  constexpr int kConnectionsMax = 64;
  if (options.token.empty()) return absl::InvalidArgumentError("an exchange needs a token");
  if (options.chunk_bytes < compression::kFrameHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("chunk_bytes ", options.chunk_bytes,
                                                   " is less than a frame's header, ",
                                                   compression::kFrameHeaderBytes));
  }
  if (options.reconnect_min <= absl::ZeroDuration() ||
      options.reconnect_max < options.reconnect_min) {
    return absl::InvalidArgumentError("reconnect_min must be positive, reconnect_max no less");
  }
  if (options.sign_of_life_every <= absl::ZeroDuration() ||
      (options.silence_max != absl::InfiniteDuration() &&
       options.silence_max < 5 * options.sign_of_life_every)) {
    return absl::InvalidArgumentError(
        absl::StrCat("silence_max ", absl::FormatDuration(options.silence_max),
                     " must be at least five times sign_of_life_every, ",
                     absl::FormatDuration(options.sign_of_life_every), ", which must be positive"));
  }
  std::set<int> peers;
  for (const LinkOptions& link : options.links) {
    if (link.peer_group == options.group || !peers.insert(link.peer_group).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          SelfName(options), " has two links with device group ", link.peer_group, " or is it"));
    }
    if (link.window < 1 || link.window > kWindowMax || link.connections < 1 ||
        link.connections > kConnectionsMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "link with device group ", link.peer_group, ": window ", link.window, " must be 1 to ",
          kWindowMax, ", connections ", link.connections, " 1 to ", kConnectionsMax));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ExchangeCounters& ExchangeCounters::operator+=(const ExchangeCounters& other) {
  frames_sent += other.frames_sent;
  frames_received += other.frames_received;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  frames_resent += other.frames_resent;
  reconnects += other.reconnects;
  duplicates_dropped += other.duplicates_dropped;
  stale_epochs_dropped += other.stale_epochs_dropped;
  corrupt_dropped += other.corrupt_dropped;
  signs_of_life_received += other.signs_of_life_received;
  return *this;
}

absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeOptions& options,
                                                       Transport& transport, Clock& clock) {
  LH_RETURN_IF_ERROR(Validate(options));
  auto exchange = std::make_unique<ExchangeImpl>(options, clock);
  LH_RETURN_IF_ERROR(exchange->Start(transport));
  return exchange;
}

}  // namespace longhaul::worker
