// Command demorollout moves a pool under traffic to other versions of its weights, once by each strategy,
// and shows what that was like: a timeline for each backend in the terminal and as SVG, the longest time
// in which nothing began, and what ran on which version. It judges the run by the engines' own records,
// and fails if anything ran twice, was lost unsaid, or ran on another version than its lease says.
package main
