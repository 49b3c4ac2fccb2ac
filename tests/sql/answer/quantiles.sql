-- Medians and quantiles.
-- table: people

select median(age) from people

select median(score), median(balance), median(height), median("odd name") from people

select median(score - age) from people where member

select quantile_cont(age, 0.25), quantile_cont(age, 0.75) from people

select quantile_disc(age, 0.25), quantile_disc(age, 0.9), quantile_disc(balance, 0.1) from people

select quantile(score, 0.5) from people

select percentile_cont(0.5) within group (order by score) from people

select percentile_disc(0.9) within group (order by score) from people

select quantile_cont(balance, 0.33) filter (where member), median(score) filter (where age < 20) from people

select nationality, median(score) from people group by nationality order by nationality nulls last

select member, median(age), quantile_disc(balance, 0.75), count(*) from people group by member order by member

select median(age) from people where age > 1000

select median(age) as m from people where nationality = 'Kenya' and member

select floor(age / 10) as decade, median(score) as m from people group by decade having median(score) > 75 order by m desc, decade

-- Arithmetic with quantiles in it.
select quantile_cont(age, 0.75) - quantile_cont(age, 0.25) as spread from people

select median(score) / median(age), median(balance) + 1, -median(age), abs(median(balance)) from people

select avg(score) - median(score) as skew, round(median(score) * 1.5, 1), sqrt(median(age)), power(median(age), 2) from people

select member, median(score) / nullif(count(*), 0) as x, exp(median(balance) / 10) from people group by member order by x desc
