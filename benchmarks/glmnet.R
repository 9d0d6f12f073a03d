# A session of R that fits what it is told, for benchmarks/glmnet.py. Lines on stdin, a line of answer on stdout.
#
#   load FOLDER                    X by compressed columns (data, indices, indptr, shape), y, alphas and, for
#                                  cross-validation, folds: little-endian files that Session.load wrote
#   path FAMILY TYPE THRESH        one path; its coefficients go to FOLDER/beta_*.bin
#   fit  FAMILY THRESH L1_RATIO INTERCEPT STANDARDIZE POSITIVE
#                                  a path with these options and FOLDER/weights.bin; intercepts go to FOLDER/a0.bin
#   cv   FAMILY TYPE THRESH CORES  cv.glmnet over the folds; its curve goes to FOLDER/curve.bin
#
# Answers: "done SECONDS CPU_SECONDS", of the fit alone, or "failed MESSAGE". CPU_SECONDS are without the processes of
# parallel folds. thresh 0 leaves glmnet's default.

suppressPackageStartupMessages(library(glmnet))
glmnet.control(fdev = 0, devmax = 1) # all alphas, however much deviance is explained

answer <- function(...) {
  cat("answer", ..., "\n")
  flush(stdout())
}

read_values <- function(name, what, size) {
  path <- file.path(folder, paste0(name, ".bin"))
  readBin(path, what, n = file.size(path) / size, size = size, endian = "little")
}

write_doubles <- function(name, values) {
  writeBin(as.double(values), file.path(folder, paste0(name, ".bin")), endian = "little")
}

load_data <- function(where) {
  folder <<- where
  shape <- read_values("shape", "integer", 4)
  X <<- new("dgCMatrix",
    i = read_values("indices", "integer", 4), p = read_values("indptr", "integer", 4),
    x = read_values("data", "double", 8), Dim = shape
  )
  y <<- read_values("y", "double", 8)
  alphas <<- read_values("alphas", "double", 8)
  folds <<- if (file.exists(file.path(where, "folds.bin"))) read_values("folds", "integer", 4)
}

timed <- function(expression) {
  began <- Sys.time()
  began_cpu <- proc.time()
  result <- expression # evaluated here
  cpu <- sum((proc.time() - began_cpu)[c("user.self", "sys.self")])
  list(result = result, seconds = c(as.numeric(Sys.time() - began, units = "secs"), cpu))
}

options_of <- function(family, type, thresh) {
  options <- list(lambda = alphas, family = family, standardize = FALSE, intercept = FALSE, maxit = 1e7)
  if (thresh > 0) options$thresh <- thresh
  if (family == "gaussian") options$type.gaussian <- type else options$type.logistic <- type
  options
}

target <- function(family) if (family == "binomial") factor(y, levels = c(-1, 1)) else y

fit_path <- function(family, type, thresh) {
  arguments <- c(list(X, target(family)), options_of(family, type, thresh))
  run <- timed(do.call(glmnet, arguments))
  write_path(run$result)
  run$seconds
}

fit_with <- function(family, thresh, l1_ratio, intercept, standardize, positive) {
  run <- timed(glmnet(
    X, target(family),
    family = family, lambda = alphas, thresh = thresh, maxit = 1e7, weights = read_values("weights", "double", 8),
    alpha = l1_ratio, intercept = intercept, standardize = standardize, lower.limits = if (positive) 0 else -Inf
  ))
  write_path(run$result)
  write_doubles("a0", run$result$a0)
  run$seconds
}

write_path <- function(fitted) {
  beta <- fitted$beta
  if (ncol(beta) < length(alphas)) stop(sprintf("it gave up after %d of %d alphas", ncol(beta), length(alphas)))
  writeBin(beta@i, file.path(folder, "beta_indices.bin"), endian = "little")
  writeBin(beta@p, file.path(folder, "beta_indptr.bin"), endian = "little")
  write_doubles("beta_data", beta@x)
}

fit_cv <- function(family, type, thresh, cores) {
  if (cores > 1) doMC::registerDoMC(cores)
  measure <- if (family == "binomial") "deviance" else "mse"
  arguments <- c(
    list(X, target(family), foldid = folds, type.measure = measure, parallel = cores > 1),
    options_of(family, type, thresh)
  )
  run <- timed(do.call(cv.glmnet, arguments))
  stopifnot(length(run$result$cvm) == length(alphas))
  write_doubles("curve", run$result$cvm)
  write_doubles("chosen", run$result$lambda.min)
  run$seconds
}

input <- file("stdin", "r")
answer("done", as.character(packageVersion("glmnet")))
while (length(line <- readLines(input, n = 1)) > 0) {
  words <- strsplit(line, "\t")[[1]]
  tryCatch(
    {
      seconds <- switch(words[1],
        load = {
          load_data(words[2])
          c(0, 0)
        },
        path = fit_path(words[2], words[3], as.numeric(words[4])),
        fit = fit_with(
          words[2], as.numeric(words[3]), as.numeric(words[4]), words[5] == "TRUE", words[6] == "TRUE",
          words[7] == "TRUE"
        ),
        cv = fit_cv(words[2], words[3], as.numeric(words[4]), as.integer(words[5]))
      )
      answer("done", sprintf("%.6f", seconds))
    },
    error = function(e) answer("failed", gsub("\n", " ", conditionMessage(e)))
  )
}
