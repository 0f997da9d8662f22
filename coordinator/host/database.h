// Private to the host: SQLite behind absl::Status.
#ifndef LONGHAUL_COORDINATOR_HOST_DATABASE_H_
#define LONGHAUL_COORDINATOR_HOST_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace longhaul::coordinator {

class Database;

// A prepared statement. Errors name the file. Must not outlive its database.
class Statement {
 public:
  // Values by 1-based position; they are copied.
  void BindText(int position, absl::string_view value);
  void BindWhole(int position, int64_t value);
  void BindReal(int position, double value);

  // To the next row: true if there is one. After false or an error it can be bound and run again.
  absl::StatusOr<bool> Next();
  // Runs to the end.
  absl::Status Run();

  // Columns of the row, from 0.
  std::string Text(int column) const;
  int64_t Whole(int column) const;
  // NaN for NULL: SQLite stores NaN as NULL.
  double Real(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Database& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}

  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

struct DatabaseSchema {
  std::string kind;  // "coordinator journal", for messages and stored in the file
  int version = 1;
  std::string creation;  // statements that make the tables of an empty file
  // Statements that bring a file of version 1 to version 2, of 2 to 3, ...; for all but the newest.
  std::vector<std::string> upgrades = {};
};

// One file, locked against other processes, write-ahead log, every commit synced to the disk. One
// thread at a time.
class Database {
 public:
  // Makes the file if it is absent, and upgrades one of an older version. FailedPrecondition for
  // another kind or a newer version;
  // DataLoss for a damaged file; Unavailable if another process has it.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                        const DatabaseSchema& schema);
  ~Database();

  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);

  // Runs `write` within a transaction: all of it is durable on OK, none of it on an error.
  template <typename F>
  absl::Status Transact(F write) {
    absl::Status status = Execute("BEGIN IMMEDIATE");
    if (status.ok()) status = write();
    if (status.ok()) status = Execute("COMMIT");
    if (!status.ok()) RollBack();
    return status;
  }

  // The last result code as a status.
  absl::Status Error(int code) const;

 private:
  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}
  absl::Status SetUp(const DatabaseSchema& schema);
  absl::Status CheckSchema(const DatabaseSchema& schema);
  void RollBack();

  const std::string path_;
  sqlite3* const handle_;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_DATABASE_H_
