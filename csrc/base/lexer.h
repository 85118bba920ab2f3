/* Words, numbers and punctuation of the text forms (graph, loops, expressions). `#` starts a
 * comment. Errors name line and column and show the line with a caret. */
#ifndef CI_BASE_LEXER_H
#define CI_BASE_LEXER_H

#include "base/context.h"

typedef enum CiTokenKind {
    CI_TOKEN_end,
    CI_TOKEN_name,  /* letters, digits, _, starting with a letter or _; % and @ before one are punct
                     */
    CI_TOKEN_int,   /* 64 bits, no sign: above INT64_MAX int_value holds the bits; 0x.. too */
    CI_TOKEN_float, /* 1.5 1e-3 inf nan are floats; hex floats too */
    CI_TOKEN_string, /* "..." with \" \\ \n \xHH */
    CI_TOKEN_punct   /* one character, or -> .. <= >= == != // */
} CiTokenKind;

typedef struct CiLexer {
    CiContext *ctx;
    const char *source; /* for messages */
    const char *text;
    const char *at;
    int line;
    CiTokenKind kind; /* the current token */
    const char *start;
    size_t length;
    int64_t int_value;
    double float_value;
    const char *string; /* interned text of a name or string */
} CiLexer;

/* Reads the first token too: after it, and after each next, the current token is there. */
void ci_lexer_init(CiLexer *lex, CiContext *ctx, const char *text);
void ci_lexer_next(CiLexer *lex);
bool ci_lexer_is(const CiLexer *lex, const char *token);
/* Consumes the token when it is there. */
bool ci_lexer_accept(CiLexer *lex, const char *token);
void ci_lexer_expect(CiLexer *lex, const char *token);
const char *ci_lexer_expect_name(CiLexer *lex);
int64_t ci_lexer_expect_int(CiLexer *lex); /* with an optional minus */
_Noreturn void ci_lexer_fail(CiLexer *lex, const char *format, ...) CI_PRINTF(2, 3);
/* Runs a parser, of which lex is the cursor. A failure of what it calls gets line and column, too. */
void ci_lexer_run(CiContext *ctx, CiLexer *lex, void (*parse)(CiContext *ctx, void *arg), void *arg);

#endif
