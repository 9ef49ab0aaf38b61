// Why a job ends, by codes that stay the same: the last line of a failed job names one, the file of
// --error-file has it, `hvdrun explain CODE` and docs/failure-codes.md explain it. A code is never
// used again for something else. Pure.
#ifndef HVD_CONFIGS_FAILURE_CODES_H_
#define HVD_CONFIGS_FAILURE_CODES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct FailureCode {
  std::string_view code;                // "HVD102"
  std::string_view name;                // "rank-signal"
  std::string_view kind;                // "kind" of the error file; empty: there is no such file
  std::string_view exit_code;           // of hvdrun: "79", "128 + n"
  std::string_view what;                // one sentence
  std::vector<std::string_view> cures;  // what to try, a sentence each
  std::string_view page;                // of docs/
};

std::span<const FailureCode> FailureCodes();
// By code or name, in any case; null: there is none.
const FailureCode* FindFailureCode(std::string_view word);

// hvdrun explain: all codes; one of them, or an exit code; empty: it is neither.
std::string FailureCodesText();
std::string ExplainText(std::string_view word);
// docs/failure-codes.md.
std::string FailureCodesPage();

}  // namespace hvd

#endif  // HVD_CONFIGS_FAILURE_CODES_H_
