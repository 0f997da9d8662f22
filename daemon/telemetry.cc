#include "daemon/telemetry.h"

#include <exception>
#include <map>

#include "absl/strings/str_cat.h"
#include "prometheus/client_metric.h"
#include "prometheus/collectable.h"
#include "prometheus/exposer.h"
#include "prometheus/metric_family.h"

namespace longhaul::daemon {
namespace {

// Gathers figures of one name, which must be one family.
class FigureCollector : public prometheus::Collectable {
 public:
  explicit FigureCollector(std::function<std::vector<Figure>()> collect)
      : collect_(std::move(collect)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::map<std::string, prometheus::MetricFamily> families;
    for (const Figure& figure : collect_()) {
      prometheus::MetricFamily& family = families[figure.name];
      family.name = figure.name;
      family.help = figure.help;
      family.type =
          figure.is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
      prometheus::ClientMetric& metric = family.metric.emplace_back();
      for (const auto& [name, value] : figure.labels) metric.label.push_back({name, value});
      (figure.is_counter ? metric.counter.value : metric.gauge.value) = figure.value;
    }
    std::vector<prometheus::MetricFamily> result;
    for (auto& [name, family] : families) result.push_back(std::move(family));
    return result;
  }

 private:
  const std::function<std::vector<Figure>()> collect_;
};

}  // namespace

class Telemetry::Impl {
 public:
  Impl(const Address& address, std::function<std::vector<Figure>()> collect)
      : collector_(std::make_shared<FigureCollector>(std::move(collect))),
        exposer_(ToString(address), 1) {
    exposer_.RegisterCollectable(collector_);
  }

  int port() const { return exposer_.GetListeningPorts().front(); }

 private:
  // The exposer keeps a weak reference.
  const std::shared_ptr<FigureCollector> collector_;
  prometheus::Exposer exposer_;
};

Telemetry::Telemetry(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Telemetry::~Telemetry() = default;

int Telemetry::port() const { return impl_->port(); }

absl::StatusOr<std::unique_ptr<Telemetry>> Telemetry::Serve(
    const Address& address, std::function<std::vector<Figure>()> collect) {
  try {
    auto impl = std::make_unique<Impl>(address, std::move(collect));
    return std::unique_ptr<Telemetry>(new Telemetry(std::move(impl)));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("cannot serve metrics on ", ToString(address), ": ",
                                               error.what(), "; is the port in use?"));
  }
}

}  // namespace longhaul::daemon
