// Reading the fields of a JSON object that somebody else wrote. nlohmann's own conversions cast any
// number to any number, and one beyond the target's range is undefined behaviour.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_JSON_FIELD_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_JSON_FIELD_H_

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace hvd {

// Throws a nlohmann::json::exception where the field is missing, of another type, or an integer
// that T does not hold.
template <typename Json, typename T>
void ReadField(const Json& object, const char* name, T& value) {
  const Json& field = object.at(name);
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    const bool fits = field.is_number_unsigned()  ? std::in_range<T>(field.template get<uint64_t>())
                      : field.is_number_integer() ? std::in_range<T>(field.template get<int64_t>())
                                                  : false;
    if (!fits) {
      throw nlohmann::json::other_error::create(
          501, std::string(name) + " is no integer of its range", &field);
    }
  }
  field.get_to(value);
}

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_JSON_FIELD_H_
