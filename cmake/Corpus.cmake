# The synthetic corpus: a grammar and its lexicon, separate from Plumb's library and not part of its interface.
function(plumb_add_corpus target)
  set(folder ${PROJECT_SOURCE_DIR}/src/corpus)
  set(lexicon ${PROJECT_BINARY_DIR}/corpus/lexicon_text.cpp)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB words CONFIGURE_DEPENDS ${folder}/lexicon/*.txt)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/corpus)
  add_custom_command(
    OUTPUT ${lexicon}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder}/lexicon -DOUTPUT=${lexicon} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedLexicon.cmake
    DEPENDS ${words} ${PROJECT_SOURCE_DIR}/cmake/EmbedLexicon.cmake
    COMMENT "Embedding the lexicon" VERBATIM)
  add_library(${target} OBJECT ${sources} ${lexicon})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # the languages' files mirror each other, names included
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(${target} PRIVATE plumb_options)
endfunction()
