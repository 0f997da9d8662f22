#include "coordinator/host/metrics_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/host/completed_steps.h"
#include "coordinator/host/database.h"

namespace longhaul::coordinator {
namespace {

constexpr char kCreation[] =
    "CREATE TABLE steps ("
    " run TEXT NOT NULL, step INTEGER NOT NULL, term INTEGER NOT NULL, number INTEGER NOT NULL,"
    " stage INTEGER NOT NULL, stages INTEGER NOT NULL, applied INTEGER NOT NULL,"
    " loss REAL, gradient_norm REAL, learning_rate REAL, tokens INTEGER NOT NULL,"
    " total_seconds REAL, compute_seconds REAL, wait_seconds REAL,"
    " has_validation INTEGER NOT NULL, validation_loss REAL,"
    " PRIMARY KEY (run, step, term, number, stage)) WITHOUT ROWID;"
    "CREATE INDEX validations ON steps (run, step) WHERE has_validation = 1;"
    "CREATE INDEX skips ON steps (run, step) WHERE applied = 0;";

constexpr char kInsert[] =
    "INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

// How many completed steps the rate in RunFigures looks back on.
constexpr int64_t kRateSteps = 20;

absl::Status Insert(Statement& insert, const control::StepReport& report) {
  insert.BindText(1, report.run);
  insert.BindWhole(2, report.step);
  insert.BindWhole(3, report.epoch.term);
  insert.BindWhole(4, report.epoch.number);
  insert.BindWhole(5, report.stage);
  insert.BindWhole(6, report.stages);
  insert.BindWhole(7, report.applied ? 1 : 0);
  insert.BindReal(8, report.loss);
  insert.BindReal(9, report.gradient_norm);
  insert.BindReal(10, report.learning_rate);
  insert.BindWhole(11, report.tokens);
  insert.BindReal(12, report.total_seconds);
  insert.BindReal(13, report.compute_seconds);
  insert.BindReal(14, report.wait_seconds);
  insert.BindWhole(15, report.has_validation ? 1 : 0);
  insert.BindReal(16, report.validation_loss);
  return insert.Run();
}

// A row of SELECT * FROM steps.
control::StepReport ReadRow(const Statement& row) {
  control::StepReport report;
  report.run = row.Text(0);
  report.step = row.Whole(1);
  report.epoch = {static_cast<uint32_t>(row.Whole(2)), static_cast<uint32_t>(row.Whole(3))};
  report.stage = static_cast<int>(row.Whole(4));
  report.stages = static_cast<int>(row.Whole(5));
  report.applied = row.Whole(6) != 0;
  report.loss = row.Real(7);
  report.gradient_norm = row.Real(8);
  report.learning_rate = row.Real(9);
  report.tokens = row.Whole(10);
  report.total_seconds = row.Real(11);
  report.compute_seconds = row.Real(12);
  report.wait_seconds = row.Real(13);
  report.has_validation = row.Whole(14) != 0;
  report.validation_loss = row.Real(15);
  return report;
}

class SqliteMetrics : public MetricsStore {
 public:
  explicit SqliteMetrics(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  absl::Status Record(const std::vector<control::StepReport>& reports) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return database_->Transact([&]() -> absl::Status {
      LH_ASSIGN_OR_RETURN(Statement insert, database_->Prepare(kInsert));
      for (const control::StepReport& report : reports) LH_RETURN_IF_ERROR(Insert(insert, report));
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<CompletedStep>> CompletedSteps(const std::string& run, int64_t after,
                                                            int limit) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return CompletedLocked(run, after, limit);
  }

  absl::StatusOr<std::vector<control::StepReport>> NewestReports(const std::string& run,
                                                                 const Epoch& epoch,
                                                                 int64_t after) override {
    std::lock_guard<std::mutex> lock(mutex_);
    // The stages of an epoch are at most a few steps apart: look from the newest step down, until
    // every stage was met.
    LH_ASSIGN_OR_RETURN(Statement select,
                        database_->Prepare("SELECT * FROM steps WHERE run = ? AND term = ? AND "
                                           "number = ? AND step > ? ORDER BY step DESC"));
    select.BindText(1, run);
    select.BindWhole(2, epoch.term);
    select.BindWhole(3, epoch.number);
    select.BindWhole(4, after);
    std::map<int, control::StepReport> newest;
    while (true) {
      LH_ASSIGN_OR_RETURN(const bool more, select.Next());
      if (!more) break;
      control::StepReport report = ReadRow(select);
      const size_t stages = static_cast<size_t>(report.stages);
      const int stage = report.stage;
      newest.emplace(stage, std::move(report));
      if (newest.size() >= stages) break;
    }
    std::vector<control::StepReport> reports;
    for (auto& [stage, report] : newest) reports.push_back(std::move(report));
    return reports;
  }

  absl::StatusOr<RunFigures> Figures(const std::string& run, int64_t step) override {
    std::lock_guard<std::mutex> lock(mutex_);
    RunFigures figures;
    LH_RETURN_IF_ERROR(AddNewest(run, figures));
    const int64_t last = std::min(step, figures.newest_step);
    if (last <= 0) return figures;
    LH_ASSIGN_OR_RETURN(
        const std::vector<CompletedStep> steps,
        CompletedLocked(run, std::max<int64_t>(0, last - kRateSteps), std::min(last, kRateSteps)));
    if (!steps.empty()) AddRecent(steps, figures);
    LH_ASSIGN_OR_RETURN(
        Statement skips,
        database_->Prepare("SELECT COUNT(DISTINCT step) FROM steps INDEXED BY skips "
                           "WHERE run = ? AND step <= ? AND applied = 0"));
    skips.BindText(1, run);
    skips.BindWhole(2, last);
    LH_ASSIGN_OR_RETURN(const bool counted, skips.Next());
    if (counted) figures.skipped_steps = skips.Whole(0);
    LH_RETURN_IF_ERROR(AddValidation(run, last, figures));
    return figures;
  }

 private:
  absl::StatusOr<std::vector<CompletedStep>> CompletedLocked(const std::string& run, int64_t after,
                                                             int64_t limit) {
    LH_ASSIGN_OR_RETURN(
        Statement select,
        database_->Prepare("SELECT * FROM steps WHERE run = ? AND step > ? ORDER BY "
                           "step, term, number, stage"));
    select.BindText(1, run);
    select.BindWhole(2, after);
    StepCollector collector(after, limit);
    while (!collector.full()) {
      LH_ASSIGN_OR_RETURN(const bool more, select.Next());
      if (!more) break;
      collector.Add(ReadRow(select));
    }
    return std::move(collector).Finish();
  }

  static void AddRecent(const std::vector<CompletedStep>& steps, RunFigures& figures) {
    figures.step = steps.back().step;
    figures.loss = steps.back().loss;
    figures.step_epoch = steps.back().epoch;
    std::vector<double> times;
    double seconds = 0;
    double tokens = 0;
    for (const CompletedStep& step : steps) {
      seconds += step.seconds;
      if (step.epoch == figures.step_epoch) times.push_back(step.seconds);
      tokens += static_cast<double>(step.tokens);
    }
    if (seconds > 0) figures.tokens_per_second = tokens / seconds;
    const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    figures.step_seconds = *middle;
  }

  absl::Status AddNewest(const std::string& run, RunFigures& figures) {
    // Ordered as the table is, so that no more than the newest few rows are read.
    LH_ASSIGN_OR_RETURN(
        Statement select,
        database_->Prepare("SELECT step, term, number FROM steps WHERE run = ? "
                           "GROUP BY step, term, number HAVING COUNT(*) = MAX(stages) "
                           "ORDER BY step DESC, term DESC, number DESC LIMIT 1"));
    select.BindText(1, run);
    LH_ASSIGN_OR_RETURN(const bool found, select.Next());
    if (!found) return absl::OkStatus();
    figures.newest_step = select.Whole(0);
    figures.newest_epoch = {static_cast<uint32_t>(select.Whole(1)),
                            static_cast<uint32_t>(select.Whole(2))};
    return absl::OkStatus();
  }

  absl::Status AddValidation(const std::string& run, int64_t last, RunFigures& figures) {
    LH_ASSIGN_OR_RETURN(
        Statement select,
        database_->Prepare("SELECT validation_loss FROM steps INDEXED BY validations WHERE run = ? "
                           "AND step <= ? AND has_validation = 1 "
                           "ORDER BY step DESC, term DESC, number DESC LIMIT 1"));
    select.BindText(1, run);
    select.BindWhole(2, last);
    LH_ASSIGN_OR_RETURN(figures.has_validation, select.Next());
    if (figures.has_validation) figures.validation_loss = select.Real(0);
    return absl::OkStatus();
  }

  std::mutex mutex_;
  const std::unique_ptr<Database> database_;  // guarded by mutex_
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsStore>> OpenSqliteMetrics(const std::string& path) {
  LH_ASSIGN_OR_RETURN(
      std::unique_ptr<Database> database,
      Database::Open(path, {.kind = "metrics record", .version = 1, .creation = kCreation}));
  return std::unique_ptr<MetricsStore>(new SqliteMetrics(std::move(database)));
}

}  // namespace longhaul::coordinator
