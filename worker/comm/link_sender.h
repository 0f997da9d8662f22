// The sending direction of a link.
#ifndef LONGHAUL_WORKER_COMM_LINK_SENDER_H_
#define LONGHAUL_WORKER_COMM_LINK_SENDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/ids.h"
#include "worker/comm/link_context.h"
#include "worker/comm/link_health.h"
#include "worker/comm/link_rules.h"
#include "worker/comm/send_queue.h"
#include "worker/comm/sender_connection.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// Encodes frames on the caller's thread and sends them on its connections' threads. Frames of one
// kind are sent by one thread at a time.
class LinkSender {
 public:
  LinkSender(const LinkContext& context, LinkRules rules, Transport& transport);
  // Cancels and joins.
  ~LinkSender();

  absl::Status Send(const FrameKey& key, absl::Span<const float> values, absl::Time deadline);
  absl::Status SendEncoded(const FrameKey& key, const EncodedTensor& tensor, absl::Time deadline);
  absl::Status SendDoubles(const FrameKey& key, absl::Span<const double> values,
                           absl::Time deadline);
  absl::Status Flush(absl::Time deadline);
  void Cancel(const absl::Status& reason);
  // For messages, as LinkHealth::Describe.
  std::string Describe() const { return health_.Describe(); }

 private:
  // The rule of the key's kind, or why such a frame cannot be sent here.
  absl::StatusOr<const KindRule*> Check(const FrameKey& key, compression::ElementType element,
                                        size_t elements) const;
  absl::Status Reserve(const FrameKey& key, absl::Time deadline);
  // `bytes` has the header's place, then the payload.
  void Push(const FrameKey& key, const KindRule& rule, size_t elements, std::string bytes);

  const LinkContext& context_;
  const LinkRules rules_;
  LinkHealth health_;
  SendQueue queue_;
  std::vector<std::unique_ptr<SenderConnection>> connections_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_LINK_SENDER_H_
