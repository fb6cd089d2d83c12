/*
 * range-doubt.h - where what debug information says of a variable's place is
 * not so, as far as the code shows it. Pure.
 */
#ifndef SMCO_RANGE_DOUBT_H
#define SMCO_RANGE_DOUBT_H

#include "supervisor/probe/range-edge.h"
#include "supervisor/probe/range-site.h"

/*
 * range-register.c. A saved register gets its caller's value back: instruction
 * @i is a pop, or a load of the whole register from the frame with nothing but
 * the like before the return. Or it gets the stack protector's number: gcc does
 * not say that a parameter has left it then.
 */
bool range_doubt_restore(const struct range_code *code, size_t i);

/*
 * Does the write of instruction @in to memory place @p take the variable out of
 * it? The compiler puts something else there, and says so at its end. @own are
 * the variable's places in the function, @nr of them.
 */
bool range_doubt_store(const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, const struct range_insn *in);
/* range-senseless.c. The same of place @p in the file's data, where a variable
 * may be for a while only. */
bool range_doubt_data(const struct var_place *p, const struct range_insn *in);
/*
 * range-again.c. It does not if the variable is in that memory again wherever
 * control goes from the store, instruction @i, with nothing written there
 * meanwhile: then it was its value. Nobody else may have the address.
 */
bool range_doubt_again(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, size_t i);

/*
 * Is @p "x + 1" for an x in memory that an instruction both reads and writes?
 * Where the compiler has made one of the load, the addition and the store, it
 * goes on saying "x + 1" behind it.
 */
bool range_doubt_memory(const struct range_code *code,
			const struct variables *v, const struct var_place *p);

/* range-senseless.c. Does @p lie below the stack pointer's red zone? gcc goes
 * on saying where a variable of the frame was when that has been taken down. */
bool range_doubt_below(const struct var_place *p);

/*
 * range-senseless.c. Is what instruction @in writes to the memory of @p longer
 * than variable @var, all of which is there? Then it is another one's, that has
 * the same memory at another time. So is what begins before that memory where
 * @var is for a while only: a register is stored from its lowest byte on. Not
 * asked of members of structs.
 */
bool range_doubt_longer(const struct variable *var, const struct var_place *p,
			const struct range_insn *in);

/*
 * range-wide.c. Does instruction @i load eight bytes that begin with the memory
 * of @p, of @var, which is less, with nobody in the rest? Where that is, once
 * in the function, not copied to elsewhere, or given to a call, it is a pointer
 * that has the same memory at another time. @all are the places in the
 * function, @nr of them.
 */
bool range_doubt_wide(const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      const struct variable *var, const struct var_place *p,
		      size_t i);

/*
 * range-senseless.c. Is @p an address in the frame where a number is meant?
 * LLVM leaves out that the memory there is to be read, where a variable that it
 * computes with is put on the stack.
 */
bool range_doubt_address(const struct range_code *code,
			 const struct variables *v, const struct var_place *p);

/*
 * range-senseless.c. The code of the function was not optimised: all that it
 * has lies in one frame for the whole of its blocks. @all are the places in it,
 * @nr of them.
 */
bool range_not_optimised(const struct range_code *code,
			 const struct variables *v,
			 const struct range_index_entry *all, size_t nr);

/*
 * Is what instruction @i stores at @offset, @bytes of it, changed at once where
 * it lies? Then it is half of a computation: an instruction that changes memory
 * has only one other operand, so the first is put there before. So it is with
 * fields of bits that are cleared and set. Not asked of code that is not
 * optimised, which does as the source says.
 */
bool range_doubt_half(const struct range_code *code, size_t i, int64_t offset,
		      uint64_t bytes);

/*
 * Does instruction @i, which writes to memory, leave @mask of it as it was? It
 * is read, all but some bits are kept, and it is put back: others' bits were
 * meant.
 */
bool range_doubt_kept(const struct range_code *code, size_t i, uint64_t mask);
/* range-cover.c. The same of a bit-field of type @t, @delta bytes into what is
 * written. */
bool range_doubt_kept_field(const struct range_code *code, size_t i,
			    const struct var_type *t, int64_t delta);
/* Does instruction @i read memory that is put back, changed or not, a few
 * instructions on? */
bool range_doubt_put_back(const struct range_code *code, size_t i);

/*
 * Does the block of @p end with instruction @i, which stores an address in the
 * frame there? Compilers put in one slot what is not alive at the same time:
 * that is who comes next. Not asked of code that is not optimised.
 */
bool range_doubt_left(const struct range_code *code, const struct var_place *p,
		      size_t i);

/*
 * Is memory place @p, which begins at instruction @i, written only then, before
 * anybody reads it? It is said to begin a few instructions too early. The store
 * may lie behind @p, straight on, where that is cut short: where its block is
 * left for a while, or the stack pointer moved.
 */
bool range_doubt_early(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, uint64_t bytes, size_t i);

/*
 * range-filled.c. Is memory place @p, which begins at instruction @i, nobody's
 * before that, and
 * filled in it only? As range_doubt_early, where the place is said to end with
 * the store: what the memory holds at @i was never the variable's. Nothing but
 * the instruction before may lead to @i. @all are the places in the function,
 * @nr of them.
 */
bool range_doubt_unset(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       const struct var_place *p, uint64_t bytes, size_t i);
/*
 * The same, whatever else the slot was used for before: is it first touched by
 * the store with which @p ends, and by nothing in what leads to @i, since the
 * last call or way in? Then the value is said to be where it is put at the end.
 * Where @p is nothing but that store a load of more is no touch. Nor is another
 * variable in the memory until then, unless it is wider than what is stored,
 * which is all of @p.
 */
bool range_doubt_filled(const struct range_edges *e,
			const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *all, size_t nr,
			const struct var_place *p, uint64_t bytes, size_t i);
/*
 * range-bare.c. Is nothing put in the register or memory of @p, of @var, on a
 * way from where the function begins to instruction @i? Then it is its
 * caller's, or what other functions have left there: of a variable that the
 * source gives no value on that way compilers say where it would be. Not of
 * registers that arguments come in, nor where the address of the memory, or of
 * what is below it and may be a part of the same, is made on the way. If it is
 * not so of those who come straight on from the instruction before,
 * *@straight_on is set and it is false; if that is set, nobody else is asked
 * for.
 */
bool range_doubt_bare(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct var_place *p, const struct variable *var,
		      size_t i, bool *straight_on);
/* range-bare.c. All of these, of place @p of a variable of @bytes that begins
 * at instruction @i: what is there is none of its values. @own are the
 * variable's places in the function, @all those of all. */
bool range_doubt_empty(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr_own,
		       const struct range_index_entry *all, size_t nr_all,
		       const struct var_place *p, uint64_t bytes, size_t i);
/* Either, of any memory that the expression of @p, if it is one, reads. The
 * first only if nothing else leads to @i: not @is_led_to. */
bool range_doubt_loads(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       const struct var_place *p, size_t i, bool is_led_to);

/*
 * range-lent.c. The address of @p, memory in the frame, is given to a call in
 * it. Which instruction reads what is there then, straight on from that and
 * behind @p, before anything is known to be put there, or said of @var? LLVM
 * says nothing of a variable from where what is loaded has no register of its
 * own. Not one that a cmov chooses. @own are its places, @all those of all;
 * code->nr: there is none.
 */
size_t range_lent_read(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr_all,
		       const struct range_index_entry *own, size_t nr,
		       const struct variable *var, const struct var_place *p);

/*
 * range-register.c. Is @p, of @var, a parameter that stays in the register it
 * came in? That begins with the function, also where its range is said to be
 * just that.
 */
bool range_comes_in(const struct variables *v, const struct variable *var,
		    const struct var_place *p);
/*
 * The same. Does a loop lead back to where @p, such a place, begins, with
 * something else perhaps in a register that others write to (VAR_PART)?
 */
bool range_doubt_led_back(const struct range_edges *e,
			  const struct range_code *code,
			  const struct var_place *p);

/*
 * range-register.c. Is what instruction @i writes to the register of @p
 * something else? Behind a
 * call there is nothing left in a register that calls do not keep, and gcc
 * sometimes does not say that the variable has left it. Where what is there is
 * changed, the function that was called does keep it.
 */
bool range_doubt_called(const struct range_code *code,
			const struct var_place *p, size_t i);

/*
 * range-register.c. Is @p, of a variable of @width bytes, in a register that is
 * an address before instruction @i? Memory is accessed by it, straight on or
 * just before. LLVM says so where a loop counts something else than the source
 * does: an address, for instance, that another distance is added to. Less than
 * eight bytes are no address, and one plus a constant that is nowhere, while
 * the register moves on, is none that the program has; nor is one in such a
 * register where the variable was something else until then, or is 1 to 4095
 * anywhere. @own are the variable's places, @nr of them.
 */
bool range_doubt_walk(const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, unsigned width, size_t i);
/*
 * The same. Is @p, of a variable of @width bytes, the sum of two registers by
 * which memory is reached in it, or straight on to it? Less than eight bytes
 * are no address. LLVM says so where one of the two has become an address.
 */
bool range_doubt_reached(const struct range_code *code,
			 const struct variables *v, const struct var_place *p,
			 unsigned width);
/*
 * Does the write at @addr to the register of @p, a place of @var, give the
 * value to another variable? That came to the same register later, and is there
 * for as long: of two names that have become one variable (rustc makes one of
 * "let mut i = n") the write was the later one's. @all are the places in the
 * function, @nr of them.
 */
bool range_doubt_inner(const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       uint32_t var, const struct var_place *p, uint64_t addr);

/*
 * range-senseless.c. Is @p computed from registers, but the same whatever they
 * hold, as "rax - (rax + 1)"? LLVM says so where two that it knew apart have
 * become one.
 */
bool range_doubt_cancels(const struct variables *v, const struct var_place *p);
/*
 * The same. Does @p extend a part of a register by its sign, while another
 * place of @var extends as much with zeroes, or the other way round? LLVM
 * guesses it where it has made a number smaller.
 */
bool range_doubt_extended(const struct variables *v, const struct variable *var,
			  const struct var_place *p);
/*
 * The same. Is a register, or less of one, shifted right by its sign in @p, by
 * less than a half, for a variable of at most a half? Both compilers mean the
 * sign of that half, and say the whole register's, whose upper half is zeroes
 * mostly. Of a number of eight bytes it may be true: nothing tells.
 */
bool range_doubt_shifted(const struct variables *v, const struct var_type *t,
			 const struct var_place *p);
/*
 * The same. Does @p end with the addition of 2^n - k, where k is taken off a
 * variable of type @t? LLVM makes a number as short as what is needed of the
 * sum, a byte of it, or what is left when it is shifted. Not 255, nor 65535
 * without a sign, which are added to round up or to shift a range.
 */
bool range_doubt_shrunk(const struct variables *v, const struct var_type *t,
			const struct var_place *p);
/* Is @p a constant that no variable of type @t, which has a sign, can be? gcc
 * says so of what has overflowed while it tried to express the one variable by
 * another one. */
bool range_doubt_beyond(const struct var_type *t, const struct var_place *p);

/*
 * range-ahead.c. Is @p a register plus a constant that was added already? Where
 * the compiler moves the addition ahead of the statement that it belongs to, it
 * still says "plus 1" at the statement. So it does where the register is copied
 * to the one that the variable was in until then, which makes it the variable's
 * next value, or was changed when the variable left it. Or one that is said
 * only where the same register is added to, and nothing behind that: what will
 * be its value if the loop goes on; also of the lower half, or with the loop's
 * padding, if more is said to be added than is. Or one behind which, straight
 * on, the variable is in that very register, though nothing has changed it. Or
 * the sum of two registers, one of which has just become that sum. Or a part of
 * a register with a sign that only what becomes of it by an addition has: LLVM
 * says so where it has made the number that a switch asks for smaller.
 */
bool range_doubt_sum(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p);

/*
 * range-turned.c. Is a turn counted twice in @p, a register plus a constant,
 * that ends with the branch or jump back to where a loop begins, or goes
 * straight on to there? What the variable and the register were before the
 * loop, and what a turn adds to the register and has added to it already, say
 * how much more than that the variable is: *@k_ret, if @p says one turn's more.
 * Or is it range_doubt_stepped? Then that is 0. @own are its places, @nr of
 * them.
 */
bool range_doubt_twice(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, int64_t *k_ret);

/*
 * range-linear.c. Does what @p says contradict the variable's places before and
 * behind it, as far as those are sums of registers and of what lies in the
 * frame, and instructions move and add? It is nothing that the variable is both
 * before it, straight on to it, and behind it, as gcc says where a counter is
 * ahead already, or a constant is of another way. Or it is a constant more or
 * less than what is in registers behind it, as a loop goes on, though nothing
 * changes them; also if what says so is another place that a branch leads to,
 * with the same value. Or it is the sum of two registers one of which has
 * become as much more than the variable was as the other one is. Or a register
 * plus a constant, and behind it, by no statement, the variable is in another
 * one that is made in @p of that and one less. @own are the variable's places,
 * @nr of them.
 */
bool range_doubt_linear(const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *own, size_t nr,
			const struct var_place *p);

/*
 * range-unrolled.c. Is @p "((x + 4) >> 2) + 1" for nothing but the instruction
 * that adds this 4 to a register of x, or is it what that has become? The step
 * has been counted already, and the variable is one less: it begins as that,
 * where x is 0. gcc says so where it has unrolled a loop.
 */
bool range_doubt_unrolled(const struct range_code *code,
			  const struct variables *v,
			  const struct range_index_entry *own, size_t nr,
			  const struct var_place *p);

/*
 * range-tested.c. Is @p, a register, what the variable is on one way out of the
 * branch that it ends with only? Before it and behind it, straight on, the
 * variable is in another register, to which nobody writes meanwhile. LLVM says
 * so where it computes ahead of a test what comes behind that.
 */
bool range_doubt_way(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p);
/*
 * The same. Does @p, a register, begin behind an instruction that steps it,
 * ahead of a loop's branch that is decided by what it was, and is not needed
 * when the loop ends? Then it is the variable of the next turn, if there is
 * one. What it was before is *@k_ret less, and the variable had that in any
 * case; 0: that is not in it.
 */
bool range_doubt_tested(const struct range_code *code,
			const struct var_place *p, int64_t *k_ret);

/*
 * range-stepped.c. Is @p a register plus a constant that it has been counted on
 * by already? It was made of another register and that constant, and copied to
 * that one; or the register was, by way of another one. gcc says so where a
 * counter is stepped several times in a row.
 */
bool range_doubt_stepped(const struct range_code *code,
			 const struct var_place *p);
/* The same of @p, the sum or difference of a register and something else, and
 * such a constant. */
bool range_doubt_stepped_sum(const struct range_code *code,
			     const struct variables *v,
			     const struct var_place *p);

/*
 * range-moved.c. Is @p a constant, said, by no statement (gcc), from the
 * instruction on that stores it where the variable has been until then? That
 * is put there for somebody else. Or is it computed in another copy of its
 * function that begins there, too? Only one of them is given a value, the one
 * within, which is met later; what gcc says of the other it has made of the
 * variables of both. @own are the variable's places, @nr of them.
 */
bool range_doubt_moved(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p);

/*
 * range-quotient.c. Does instruction @i store what is loaded again at once, and
 * is something else stored there straight on, made of what was in a register
 * before? In code that is not optimised each statement loads what it needs: so
 * it is a part of one that has not ended, as the quotient of "x = y % 5" is.
 */
bool range_doubt_quotient(const struct range_code *code, size_t i);

/*
 * range-same.c. Is the variable in another place, a register or memory of the
 * frame, on all ways to @p, and straight on behind it, and nothing is put there
 * meanwhile? Then it has not changed, and is not what @p says, unless that is a
 * copy, a constant, or (gcc) said of a statement. Not asked if somebody may
 * have @taken the memory's address. Or does @p, a constant or what would have
 * to be computed, lead by one way only to where the variable is in a register
 * that is needed, and that nothing is put in since @p began? What is in it the
 * variable is, and it is looked at there; not where the constant was put in it
 * before. @own are the variable's places, @nr of them, also below.
 */
bool range_doubt_same(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, bool taken);
/*
 * The same. Where @p ends, exclusive: a register that the variable comes to
 * from memory of the frame ends with an instruction that writes to it, and not
 * what it made of it, if the variable is in that memory again later and nothing
 * has been put there. Otherwise, or if somebody may have @taken the memory's
 * address, where it is said to.
 */
uint64_t range_doubt_end(const struct range_code *code,
			 const struct variables *v,
			 const struct range_index_entry *own, size_t nr,
			 const struct var_place *p, bool taken);

/*
 * range-round.c. Is @p in a register that has to do with nothing in a loop, by
 * turns as it is and with a constant added? A counter would change it. LLVM
 * says so where it has made two counters one, and another variable is in the
 * register since. So are others that are computed alike. @own are the
 * variable's places in the function, @all those of all.
 */
bool range_doubt_round(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       const struct range_index_entry *own, size_t nr_own,
		       const struct var_place *p);
/*
 * The same. Is @p, a register, behind its variable by *@k_ret? That is added to
 * it where the place ends, and where that begins the variable was as much more
 * than what the register is set to.
 */
bool range_doubt_behind(const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *own, size_t nr,
			const struct var_place *p, int64_t *k_ret);

/*
 * range-ahead.c. Does @p, a register plus a constant, begin with instruction
 * @i, which adds it? Behind that the register is the variable.
 */
bool range_doubt_added(const struct range_code *code, const struct var_place *p,
		       size_t i);

/*
 * range-ahead.c. Instruction @i adds *@k_ret to the register of @p, at the end
 * of a loop. Is that ahead of what the source asks first, so that behind the
 * loop it is taken off again, in place, or, where the loop reads memory by what
 * it was, for another register? Then, if it is *@k_ret less that is looked at,
 * that is a value which the variable had in any case.
 */
bool range_doubt_counted(const struct range_code *code,
			 const struct var_place *p, size_t i, int64_t *k_ret);

/*
 * range-ways.c. Place @p, which begins at instruction *@i, may be none: a
 * constant, or what would have to be computed. Is that a branch, or before one
 * and behind the comparison that it is decided by, what is said there may
 * belong to one of its ways only: compilers move what comes first behind a
 * branch ahead of it. It is that of the way on which the variable still is
 * somewhere. *@i is the branch then, or the last one of several that lead to
 * the same. But where the first turn of a loop has been unrolled, and its test
 * is what leads out of the loop, the variable had been stepped before that.
 * Also if @p is a register in which nothing was put just before, and that is
 * not what the branch is decided by, or, gcc, memory or a register said from
 * the comparison on, where the branch leads to where @p ends.
 */
enum range_ways {
	RANGE_BOTH_WAYS,
	RANGE_STRAIGHT_ON, /* only of those who do not jump */
	RANGE_NEITHER_WAY,
};
enum range_ways range_doubt_ways(const struct range_code *code,
				 const struct variables *v,
				 const struct range_index_entry *own, size_t nr,
				 const struct var_place *p, size_t *i);

/*
 * range-case.c. Is @p, of a variable of type @t, a constant of another
 * case than that of the code where it begins? LLVM drops blocks that have
 * become empty, and what it knew of the variable there it may say of the next
 * one, where several ways meet. Not of a variable that @is_given: a parameter,
 * which its block begins with. Or it has that on some of the ways there
 * already, and nothing is known of the others. Or one that is chosen in the
 * place, of any; where that is all of a block (DW_AT_const_value), not of a
 * const.
 */
bool range_doubt_case(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, const struct var_type *t,
		      bool is_given);

/*
 * range-fork.c. Is @p, a constant of @var that begins some instructions behind
 * a branch, that of the other way out of it? There it is said, too, or it was
 * put before the branch in a register which only that way needs; where @p is
 * nothing uses it. LLVM says so of what an inlined function returns if it
 * fails. Not of -2 to 2, which a variable is for much else, nor of counters.
 * @own are the variable's places, @nr of them.
 */
bool range_doubt_fork(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct variable *var, const struct var_place *p);

/*
 * Is memory at @offset, @bytes of it, in scope place @p, at address @addr of
 * the code, also a place of another variable there, or of what is none?
 * Compilers put variables in one slot that are not alive at the same time: it
 * is the innermost block's.
 * @all are the places in the function, @nr of them.
 */
bool range_doubt_slot(const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      uint32_t var, const struct var_place *p, int64_t offset,
		      uint64_t bytes, uint64_t addr);

/*
 * range-bit.c. Is @var, no bool, at @p but the lowest bit of what that says?
 * gcc makes one number of a switch's cases, which is shifted by what the switch
 * asks for, and where that becomes an int by way of a bool it says the lowest
 * byte of it, or what that is not. A constant is known to be such a byte where
 * only what is not it can be that. @own are the variable's places, @nr of them.
 */
bool range_doubt_mask(const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct variable *var, const struct var_place *p);
/*
 * The same. May @var at @p be but the lowest bit of a number in that
 * register, just before instruction @i? Of a bool of optimised code gcc says so
 * where nobody wants it alone. Not where it was just read, as the byte that
 * somebody stored. What is computed says it itself (symbols/varplace.c).
 */
bool range_doubt_bit(const struct range_code *code, const struct variable *var,
		     const struct var_place *p, size_t i);

/*
 * range-late.c. The instructions before place @p (VAR_LATE) of variable @var
 * that store what is in it when it begins: each leads there and nowhere else,
 * no call comes in between, and nothing that writes to where it has. None if
 * another variable is in the same memory anywhere in the function, whose last
 * value it might be; but for those that lie within its own places, as what it
 * is moved to does.
 * @all are the places in the function, @nr of them. Their number in @store.
 */
#define RANGE_DOUBT_LATE 64
size_t range_doubt_late(const struct range_edges *e,
			const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *all, size_t nr,
			uint32_t var, const struct var_place *p,
			uint32_t store[RANGE_DOUBT_LATE]);

/*
 * The same of jumps that lead into the middle of place @p, memory of the frame,
 * from where the variable is not: the instruction before each, which stores as
 * many bytes as it has to just there. None where another variable is in that
 * memory then.
 */
size_t range_led_by(const struct range_edges *e, const struct range_code *code,
		    const struct variables *v,
		    const struct range_index_entry *all, size_t nr,
		    uint32_t var, const struct var_place *p,
		    uint32_t store[RANGE_DOUBT_LATE]);

#endif
