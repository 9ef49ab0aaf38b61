// Which mutant (catalogue.py) this process has: the number in CHOSEN_MUTANT. Only the copies of the
// tree that run.py makes include it.
#ifndef HVD_TEST_MUTANTS_MUTANT_H_
#define HVD_TEST_MUTANTS_MUTANT_H_

#include <cstdlib>

inline bool HvdMutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("CHOSEN_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return number == chosen;
}

#endif  // HVD_TEST_MUTANTS_MUTANT_H_
