# Writes coefficients.csv: what R's glmnet finds on the data of tests/test_glmnet.py.
# Debian: apt install r-cran-glmnet. Run: cd tests/glmnet && Rscript make.R
library(glmnet)

n <- 120
p <- 12
i <- matrix(1:n, n, p)
j <- matrix(1:p, n, p, byrow = TRUE)
X <- sin(1.7 * i + 0.37 * i * j + 0.9 * j^2) * 10^((j - 6) / 12) + 0.3 * cos(j)
X[(i * j) %% 3 == 0] <- 0
noise <- sin(12.9898 * (1:n))
linear <- as.vector(X[, 1:4] %*% c(8, -4, 2, 1.5))
y <- linear + noise
b <- as.integer(linear + 2 * noise > 0.2)
w <- 1 + ((1:n) %% 4) / 2
u <- c(0, 0.5, 1, 2, 1, 1, 3, 1, 1, 0.5, 1, 1)

fits <- list(
  plain = list(y, "gaussian", 1, 0.02, list()),
  standardize = list(y, "gaussian", 1, 0.02, list(standardize = TRUE)),
  weights = list(y, "gaussian", 1, 0.02, list(standardize = TRUE, weights = w)),
  factors = list(y, "gaussian", 1, 0.02, list(standardize = TRUE, penalty.factor = u)),
  positive = list(y, "gaussian", 1, 0.02, list(standardize = TRUE, lower.limits = 0)),
  no_intercept = list(y, "gaussian", 1, 0.02, list(intercept = FALSE)),
  logistic = list(b, "binomial", 1, 0.005, list()),
  logistic_standardize = list(b, "binomial", 1, 0.005, list(standardize = TRUE)),
  logistic_net = list(b, "binomial", 0.4, 0.01, list(standardize = TRUE, weights = w)),
  logistic_factors = list(b, "binomial", 1, 0.01, list(standardize = TRUE, penalty.factor = u)),
  logistic_offset = list(b, "binomial", 1, 0.005, list(offset = noise / 2))
)
rows <- lapply(fits, function(f) {
  options <- modifyList(list(standardize = FALSE, thresh = 1e-16, maxit = 1e7), f[[5]])
  fit <- do.call(glmnet, c(list(X, f[[1]], family = f[[2]], alpha = f[[3]], lambda = f[[4]]), options))
  as.vector(coef(fit))
})
lines <- mapply(function(name, row) paste(c(name, sprintf("%.15g", row)), collapse = ","), names(rows), rows)
writeLines(lines, "coefficients.csv")
