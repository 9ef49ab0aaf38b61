// The part of request.h that formats messages.
#include <algorithm>
#include <cstdlib>
#include <functional>

#include "runtime/base/text/comma_separated.h"
#include "runtime/base/text/format.h"
#include "runtime/core/request/request.h"
#include "runtime/core/request/request_text.h"

namespace hvd {
namespace {

std::string NumberText(double value) {
  const std::string usual = Format("{:.9g}", value);
  // Uses all digits only if the usual ones do not suffice for the value.
  return std::strtod(usual.c_str(), nullptr) == value ? usual : Format("{:.17g}", value);
}

bool AnyRows(Collective collective) {
  return collective == Collective::kAllgather || collective == Collective::kAlltoall;
}

bool SamePart(const TensorDetail& a, const TensorDetail& b, bool any_rows) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  const size_t first = any_rows && !a.shape.empty() ? 1 : 0;
  return std::equal(a.shape.begin() + first, a.shape.end(), b.shape.begin() + first);
}

bool Same(const Detail& a, const Detail& b) {
  const bool any_rows = AnyRows(a.collective);
  auto same_part = [any_rows](const auto& x, const auto& y) { return SamePart(x, y, any_rows); };
  return a.collective == b.collective && a.op == b.op && a.device == b.device && a.root == b.root &&
         a.process_set == b.process_set && a.prescale == b.prescale && a.postscale == b.postscale &&
         a.members == b.members && a.names_hash == b.names_hash &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same_part);
}

using Text = std::function<std::string(const Detail&)>;

// The message names the first rank that differs from the first one.
Status CompareField(const std::string& what, std::string_view field,
                    std::span<const RankDetail> details, const Text& text) {
  const std::string first = text(*details[0].detail);
  for (const RankDetail& each : details) {
    std::string other = text(*each.detail);
    if (other == first) continue;
    return Mismatch(
        Format("{}: ranks disagree about its {}: rank {} has {}, rank {} has {}; submit the same "
               "{} on every rank",
               what, field, details[0].rank, first, each.rank, other, field));
  }
  return Status::Ok();
}

struct Field {
  std::string_view name;
  Text text;
};

Status CompareFields(const std::string& what, std::span<const Field> fields,
                     std::span<const RankDetail> details) {
  for (const Field& field : fields) {
    Status same = CompareField(what, field.name, details, field.text);
    if (!same.ok()) return same;
  }
  return Status::Ok();
}

Status CompareParts(const std::string& what, std::span<const RankDetail> details) {
  const size_t parts = details[0].detail->parts.size();
  const bool any_rows = AnyRows(details[0].detail->collective);
  for (size_t i = 0; i < parts; ++i) {
    const Field fields[] = {
        {"element type", [i](const Detail& d) { return std::string(NameOf(d.parts[i].dtype)); }},
        {"shape", [&, i](const Detail& d) { return ShapeText(d.parts[i].shape, any_rows); }},
    };
    std::string part = what;
    if (parts > 1) part += Format(", number {} of {}", i + 1, parts);
    if (Status same = CompareFields(part, fields, details); !same.ok()) return same;
  }
  return Status::Ok();
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "[a, b, ...]": those around the first one that differs.
std::string ListText(const std::vector<std::string_view>& names, size_t differs) {
  if (names.empty()) return "other ones";
  constexpr size_t kBefore = 4, kShown = 16;
  const size_t middle = std::min(differs, names.size());
  const size_t begin = middle > kBefore ? middle - kBefore : 0;
  const size_t end = std::min(names.size(), begin + kShown);
  std::string text = begin == 0 ? "[" : "[..., ";
  for (size_t i = begin; i < end; ++i) {
    if (i != begin) text += ", ";
    text += names[i];
  }
  return text + (end == names.size() ? "]" : ", ...]");
}

Status CompareNames(const std::string& what, std::span<const RankDetail> details) {
  const Detail& first = *details[0].detail;
  for (const RankDetail& each : details) {
    if (each.detail->names_hash == first.names_hash) continue;
    const std::vector<std::string_view> ours = Lines(first.names),
                                        theirs = Lines(each.detail->names);
    const auto at = std::ranges::mismatch(ours, theirs).in1;
    const size_t differs = static_cast<size_t>(at - ours.begin());
    return Mismatch(
        Format("{}: ranks disagree about what is in it: rank {} has {}, rank {} has {}; the first "
               "that differs is number {}; submit the same tensors in the same order on every rank",
               what, details[0].rank, ListText(ours, differs), each.rank, ListText(theirs, differs),
               differs + 1));
  }
  return Status::Ok();
}

std::string Subject(std::string_view name, const Detail& detail) {
  switch (detail.collective) {
    case Collective::kBarrier: return "barrier " + Quoted(name);
    case Collective::kAddProcessSet:
    case Collective::kRemoveProcessSet: return "a change of the process sets";
    default: return "tensor " + Quoted(name);
  }
}

}  // namespace

std::string Quoted(std::string_view name) {
  constexpr size_t kShown = 200;
  if (name.size() > kShown) return "'" + std::string(name.substr(0, kShown)) + "...'";
  return "'" + std::string(name) + "'";
}

std::string ShapeText(std::span<const int64_t> shape, bool any_rows) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += i == 0 && any_rows ? "*" : std::to_string(shape[i]);
  }
  return text + "]";
}

std::string RanksText(std::span<const uint32_t> ranks) { return "[" + CommaSeparated(ranks) + "]"; }

std::string_view NameOf(Collective collective) {
  constexpr std::string_view kNames[] = {"allreduce", "allgather",       "broadcast",
                                         "alltoall",  "reducescatter",   "barrier",
                                         "join",      "add_process_set", "remove_process_set"};
  auto index = static_cast<size_t>(collective);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

std::string_view NameOf(ReduceOp op) {
  constexpr std::string_view kNames[] = {"Average",
                                         "Sum",
                                         "Adasum",
                                         "Min",
                                         "Max",
                                         "Product",
                                         "Average with HOROVOD_JOIN_AVERAGE=active"};
  auto index = static_cast<size_t>(op);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

Status CompareDetails(std::string_view name, std::span<const RankDetail> details) {
  auto same_as_first = [&](const RankDetail& d) { return Same(*d.detail, *details[0].detail); };
  if (std::all_of(details.begin(), details.end(), same_as_first)) return Status::Ok();
  const std::string what = Subject(name, *details[0].detail);
  const Field whole[] = {
      {"collective", [](const Detail& d) { return std::string(NameOf(d.collective)); }},
      {"process set", [](const Detail& d) { return std::to_string(d.process_set); }},
      {"ranks", [](const Detail& d) { return RanksText(d.members); }},
      {"number of tensors", [](const Detail& d) { return std::to_string(d.parts.size()); }},
  };
  const Field rest[] = {
      {"reduce operation", [](const Detail& d) { return std::string(NameOf(d.op)); }},
      {"root rank", [](const Detail& d) { return std::to_string(d.root); }},
      {"device", [](const Detail& d) { return d.device == DeviceKind::kHost ? "cpu" : "cuda"; }},
      {"prescale factor", [](const Detail& d) { return NumberText(d.prescale); }},
      {"postscale factor", [](const Detail& d) { return NumberText(d.postscale); }},
  };
  Status same = CompareFields(what, std::span(whole).first(3), details);
  if (same.ok()) same = CompareNames(what, details);
  if (same.ok()) same = CompareFields(what, std::span(whole).subspan(3), details);
  if (same.ok()) same = CompareParts(what, details);
  if (same.ok()) same = CompareFields(what, rest, details);
  return same;
}

}  // namespace hvd
