#include "worker/comm/link_sender.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compression/codec.h"
#include "compression/frame.h"

namespace longhaul::worker {

using compression::ElementType;
using compression::FrameHeader;
using compression::kFrameHeaderBytes;

LinkSender::LinkSender(const LinkContext& context, LinkRules rules, Transport& transport)
    : context_(context),
      rules_(std::move(rules)),
      health_(context.link.connections, context.exchange.silence_max, context.clock),
      queue_(context, health_) {
  for (int connection = 0; connection < context.link.connections; ++connection) {
    connections_.push_back(
        std::make_unique<SenderConnection>(context, connection, transport, queue_, health_));
  }
}

LinkSender::~LinkSender() { Cancel(absl::CancelledError("the exchange has ended")); }

absl::StatusOr<const KindRule*> LinkSender::Check(const FrameKey& key, ElementType element,
                                                  size_t elements) const {
  const KindRule* const rule = rules_.Find(key.kind);
  const bool fits = rule != nullptr && rule->element == element &&
                    elements <= rule->limits.elements_max &&
                    key.stage == static_cast<uint32_t>(context_.link.peer_stage) &&
                    key.epoch == context_.exchange.epoch;
  if (fits) return rule;
  return absl::InvalidArgumentError(
      absl::StrCat(SelfName(context_.exchange), " cannot send ", elements, " elements as ",
                   ToString(key), " to ", PeerName(context_.link), ": the plan's link allows ",
                   rule == nullptr ? 0 : rule->limits.elements_max, " of epoch ",
                   ToString(context_.exchange.epoch)));
}

absl::Status LinkSender::Reserve(const FrameKey& key, absl::Time deadline) {
  const absl::Time start = context_.clock.Now();
  const absl::Status status = queue_.Reserve(key.kind, deadline);
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(absl::StrCat(
      SelfName(context_.exchange), " waited ", Seconds(context_.clock.Now() - start),
      " to send the ", FrameName(key), " to ", PeerName(context_.link), ": it has not consumed ",
      queue_.DescribeUnconsumed(), ", and the window of ", FrameKindName(key.kind), " frames is ",
      context_.link.window, "; link ", Describe()));
}

absl::Status LinkSender::Send(const FrameKey& key, absl::Span<const float> values,
                              absl::Time deadline) {
  LH_ASSIGN_OR_RETURN(const KindRule* const rule, Check(key, ElementType::kFloat32, values.size()));
  LH_RETURN_IF_ERROR(Reserve(key, deadline));
  std::string bytes = queue_.TakeBuffer();
  bytes.resize(kFrameHeaderBytes + rule->codec->EncodedSizeMax(values.size()));
  const size_t size =
      rule->codec->Encode(values, {reinterpret_cast<uint8_t*>(bytes.data()) + kFrameHeaderBytes,
                                   bytes.size() - kFrameHeaderBytes});
  bytes.resize(kFrameHeaderBytes + size);
  Push(key, *rule, values.size(), std::move(bytes));
  return absl::OkStatus();
}

absl::Status LinkSender::SendEncoded(const FrameKey& key, const EncodedTensor& tensor,
                                     absl::Time deadline) {
  LH_ASSIGN_OR_RETURN(const KindRule* const rule,
                      Check(key, ElementType::kFloat32, tensor.elements));
  if (tensor.codec != rule->codec->name() ||
      tensor.bytes.size() > rule->codec->EncodedSizeMax(tensor.elements)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", FrameName(key), " to ", PeerName(context_.link), " is encoded with ", tensor.codec,
        " to ", tensor.bytes.size(), " bytes, the plan says codec ", rule->codec->name(),
        " and at most ", rule->codec->EncodedSizeMax(tensor.elements)));
  }
  LH_RETURN_IF_ERROR(Reserve(key, deadline));
  std::string bytes = queue_.TakeBuffer();
  bytes.resize(kFrameHeaderBytes);
  bytes.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  Push(key, *rule, tensor.elements, std::move(bytes));
  return absl::OkStatus();
}

absl::Status LinkSender::SendDoubles(const FrameKey& key, absl::Span<const double> values,
                                     absl::Time deadline) {
  LH_ASSIGN_OR_RETURN(const KindRule* const rule, Check(key, ElementType::kFloat64, values.size()));
  LH_RETURN_IF_ERROR(Reserve(key, deadline));
  std::string bytes(kFrameHeaderBytes, '\0');
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  Push(key, *rule, values.size(), std::move(bytes));
  return absl::OkStatus();
}

void LinkSender::Push(const FrameKey& key, const KindRule& rule, size_t elements,
                      std::string bytes) {
  FrameHeader header;
  header.key = key;
  header.run_hash = context_.run_hash;
  header.codec = rule.codec->wire_id();
  header.element = rule.element;
  header.elements = elements;
  header.payload_bytes = bytes.size() - kFrameHeaderBytes;
  compression::WriteFrameHeader(header, absl::string_view(bytes).substr(kFrameHeaderBytes),
                                bytes.data());
  queue_.Push(key, std::move(bytes));
}

absl::Status LinkSender::Flush(absl::Time deadline) {
  const absl::Time start = context_.clock.Now();
  const absl::Status status = queue_.WaitEmpty(deadline);
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(absl::StrCat(
      SelfName(context_.exchange), " waited ", Seconds(context_.clock.Now() - start), " for ",
      PeerName(context_.link), " to consume ", queue_.DescribeUnconsumed(), "; link ", Describe()));
}

void LinkSender::Cancel(const absl::Status& reason) {
  queue_.Cancel(reason);
  for (const auto& connection : connections_) connection->Stop();
}

}  // namespace longhaul::worker
