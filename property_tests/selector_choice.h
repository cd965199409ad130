// Selection, written a second time: which class a member names, what each platform tries, raises
// and logs. Rows of the selector are read as data; eight CUDA backends are not read at all
// (selector_cuda_classes.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attn/selector.h"
#include "property_tests/selector_class.h"

namespace attn::property_tests {

using PathOverrides = std::map<std::string, std::string>;  // member -> class path

class WrittenSelector {
 public:
  // ROCm's capability must be filled in.
  WrittenSelector(const SelectorFacts& facts, const PathOverrides& overrides);
  WrittenSelector(const WrittenSelector&) = delete;
  WrittenSelector& operator=(const WrittenSelector&) = delete;

  Selection select(const SelectionRequest& request) const;

  // Throws VllmError as asking for the member's class does.
  const BackendClass& get_class(std::string_view member) const;

 private:
  struct Entry {
    DescribedBackend row;
    std::unique_ptr<BackendClass> answers;
  };

  void on_cuda(const SelectionRequest& request, Selection& out) const;
  void on_rocm(const SelectionRequest& request, Selection& out) const;
  void on_xpu(const SelectionRequest& request, Selection& out) const;
  void on_cpu(const SelectionRequest& request, Selection& out) const;
  void xpu_mla(const SelectionRequest& request, Selection& out) const;
  bool rocm_requested(const std::string& member, const AttentionSelectorConfig& config,
                      Selection& out) const;
  std::vector<std::string> rocm_reasons(std::string_view member, bool requested,
                                        const AttentionSelectorConfig& config) const;
  std::string rocm_hint(const std::vector<Candidate>& candidates) const;
  const Entry& entry(std::string_view member) const;
  std::string path(std::string_view member) const;
  void answer(std::string_view member, Selection& out) const;

  SelectorFacts facts_;
  PathOverrides overrides_;
  std::map<std::string, std::string, std::less<>> defaults_;  // member -> path; "" = no value
  std::map<std::string, Entry, std::less<>> by_path_;
};

// Where two selections differ; empty when nowhere.
std::string difference(const Selection& expected, const Selection& actual);

}  // namespace attn::property_tests
